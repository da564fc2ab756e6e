#include "io_uring/ring.hpp"

#include "sys/calls.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace simplenet::v0::detail::uring {

namespace {

// Newer than the headers of liburing 2.3.
constexpr unsigned enter_no_iowait = 1U << 7;    // Linux 6.15, IORING_ENTER_NO_IOWAIT
constexpr unsigned feature_no_iowait = 1U << 17; // Linux 6.15, IORING_FEAT_NO_IOWAIT

constexpr unsigned smallest_entries = 8;
constexpr unsigned smallest_completions = 256;

// ThreadSanitizer does not see liburing's munmap() and mmap(): a ring at an address where another
// thread had one looks like a race. Tell it that the end of a ring precedes the beginning of later
// ones.
#if defined(__SANITIZE_THREAD__)
#define SIMPLENET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMPLENET_TSAN 1
#endif
#endif
#ifdef SIMPLENET_TSAN
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
int ring_memory;
void ring_begins() noexcept {
    __tsan_acquire(&ring_memory);
}
void ring_ends() noexcept {
    __tsan_release(&ring_memory);
}
#else
void ring_begins() noexcept {}
void ring_ends() noexcept {}
#endif

// liburing returns a negated errno; these turn it into -1 and errno, as system calls return.

int set_up(unsigned entries, io_uring& into, io_uring_params& params) noexcept {
    constexpr auto call = [](unsigned count, io_uring* ring, io_uring_params* how) noexcept {
        const int outcome = io_uring_queue_init_params(count, ring, how);
        if (outcome < 0) errno = -outcome;
        return outcome < 0 ? -1 : outcome;
    };
    return sys::made<sys::call::uring_setup>(call, entries, &into, &params) < 0 ? -errno : 0;
}

int give_buffers(io_uring& ring, io_uring_buf_reg& buffers) noexcept {
    constexpr auto call = [](io_uring* to, io_uring_buf_reg* what) noexcept {
        const int outcome = io_uring_register_buf_ring(to, what, 0);
        if (outcome < 0) errno = -outcome;
        return outcome < 0 ? -1 : outcome;
    };
    return sys::made<sys::call::uring_register>(call, &ring, &buffers) < 0 ? -errno : 0;
}

} // namespace

ring::~ring() {
    if (ring_.ring_fd < 0) return;
    ring_ends();
    io_uring_queue_exit(&ring_);
}

int ring::open(unsigned entries, unsigned completions, unsigned flags) noexcept {
    for (;;) {
        io_uring_params params{};
        // Since Linux 6.1. One thread submits, and the kernel processes completions only when that
        // thread asks.
        params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                       IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                       IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE | flags;
        params.cq_entries = completions;
        const int outcome = set_up(entries, ring_, params);
        if (outcome == 0) {
            ring_begins();
            no_iowait_ = (params.features & feature_no_iowait) != 0 ? enter_no_iowait : 0;
            constexpr unsigned needed =
                IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;
            return (params.features & needed) == needed ? 0 : -ENOSYS;
        }
        ring_.ring_fd = -1;
        // Locked memory is scarce: a smaller ring does the same work with more system calls.
        if (outcome != -ENOMEM || completions <= smallest_completions) return outcome;
        completions /= 2;
        entries = std::max(entries / 2, smallest_entries);
    }
}

int ring::enable() noexcept {
    const int outcome = sys::uring_enable(ring_.ring_fd);
    if (outcome < 0) return outcome;
    io_uring_register_ring_fd(&ring_); // saves a descriptor look-up per enter; may fail
    return 0;
}

// Not through liburing, which before 2.5 fails here on Linux < 6.3 once the ring's descriptor is
// registered (axboe/liburing#877).
int ring::signal_completions(int eventfd) noexcept {
    return sys::uring_register(ring_.ring_fd, IORING_REGISTER_EVENTFD, &eventfd, 1);
}

buffer_ring::~buffer_ring() {
    if (memory_ != nullptr) sys::unmap_memory(memory_, bytes_);
}

int buffer_ring::open(ring& owner, std::uint32_t buffers, std::uint16_t group) noexcept {
    entries_ = std::bit_ceil(buffers);
    bytes_ = entries_ * sizeof(io_uring_buf);
    int error = 0;
    void* const memory = sys::map_memory(bytes_, 0, error);
    if (memory == nullptr) return -error;
    memory_ = static_cast<io_uring_buf_ring*>(memory);
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uintptr_t>(memory);
    registration.ring_entries = entries_;
    registration.bgid = group;
    const int outcome = give_buffers(*owner.get(), registration);
    if (outcome == 0) io_uring_buf_ring_init(memory_);
    return outcome;
}

} // namespace simplenet::v0::detail::uring
