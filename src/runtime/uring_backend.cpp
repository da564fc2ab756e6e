// The io_uring backend: what has to wait is a completion, one io_uring_enter a turn submits, waits
// and times out. Only this file knows liburing. Layer runtime.

#include "runtime/backend_driver.hpp"
#include "runtime/loop.hpp"
#include "runtime/perform.hpp"
#include "runtime/receive_pool.hpp"
#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/runtime/readiness.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simplenet::inline v0::detail {

namespace {

// Newer than the headers of liburing 2.3.
constexpr unsigned enter_no_iowait = 1U << 7;    // Linux 6.15, IORING_ENTER_NO_IOWAIT
constexpr unsigned feature_no_iowait = 1U << 17; // Linux 6.15, IORING_FEAT_NO_IOWAIT
constexpr unsigned register_enable_rings = 12;   // liburing 2.3 declares and does not export it

std::error_code error_from(int negative_errno) noexcept {
    return {-negative_errno, std::system_category()};
}

/// A copy of an io_uring_cqe, whose place in the ring is given back before it is looked at.
struct completion {
    std::uint64_t about; // user_data
    int res;
    unsigned flags;
};

// ThreadSanitizer does not see liburing's munmap() and mmap(): a ring where another thread had one
// looks like a race. Told that the end of a ring comes before the beginning of later ones.
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

/// A ring with its mappings. Everything that waits goes through enter().
class ring {
public:
    ring() noexcept { ring_.ring_fd = -1; }
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() {
        if (ring_.ring_fd < 0) return;
        ring_ends();
        io_uring_queue_exit(&ring_);
    }

    /// @param flags  Beside those that every ring here has.
    int open(unsigned entries, unsigned completions, unsigned flags) noexcept {
        for (;;) {
            io_uring_params params{};
            // Since Linux 6.1. One thread submits, and completions are only worked on when it asks.
            params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                           IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                           IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE |
                           flags;
            params.cq_entries = completions;
            const int outcome = io_uring_queue_init_params(entries, &ring_, &params);
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

    /// The calling thread becomes the one that submits. For a ring that was made disabled.
    int enable() noexcept {
        const long outcome =
            ::syscall(__NR_io_uring_register, ring_.ring_fd, register_enable_rings, nullptr, 0);
        if (outcome < 0) return -errno;
        io_uring_register_ring_fd(&ring_); // saves a descriptor look-up an enter; may fail
        return 0;
    }

    /// Submits what is queued and waits until `wait_for` completions are there, or the time is
    /// over.
    int enter(unsigned wait_for, const std::chrono::nanoseconds* timeout) noexcept {
        const unsigned to_submit = flush();
        give_back();
        unsigned flags = IORING_ENTER_GETEVENTS;
        if (ring_.enter_ring_fd != ring_.ring_fd) flags |= IORING_ENTER_REGISTERED_RING;
        if (wait_for != 0) flags |= no_iowait_;
        __kernel_timespec limit{};
        io_uring_getevents_arg argument{};
        void* extra = nullptr;
        std::size_t extra_size = 0;
        if (timeout != nullptr) {
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*timeout);
            limit.tv_sec = seconds.count();
            limit.tv_nsec = (*timeout - seconds).count();
            argument.sigmask_sz = _NSIG / 8;
            argument.ts = reinterpret_cast<std::uintptr_t>(&limit);
            flags |= IORING_ENTER_EXT_ARG;
            extra = &argument;
            extra_size = sizeof argument;
        }
        const long outcome = ::syscall(__NR_io_uring_enter, ring_.enter_ring_fd, to_submit,
                                       wait_for, flags, extra, extra_size);
        return outcome < 0 ? -errno : static_cast<int>(outcome);
    }

    /// Completions make `eventfd` readable.
    // Not by liburing, which before 2.5 fails here on Linux < 6.3 once the ring's descriptor is
    // registered (axboe/liburing#877).
    void signal_completions(int eventfd) noexcept {
        const long outcome =
            ::syscall(__NR_io_uring_register, ring_.ring_fd, IORING_REGISTER_EVENTFD, &eventfd, 1);
        SIMPLENET_EXPECTS(outcome == 0, "the ring would not signal its completions");
    }

    /// An entry to prepare, or null if the queue is full.
    io_uring_sqe* next_entry() noexcept { return io_uring_get_sqe(&ring_); }

    /// Takes the oldest completion. False: there is none. Its place goes back to the kernel with
    /// the next give_back() or enter(): one store for all that were taken.
    [[nodiscard]] bool next_completion(completion& seen) noexcept {
        const io_uring_cq& queue = ring_.cq;
        if (taken_ == known_) {
            known_ = io_uring_smp_load_acquire(queue.ktail);
            if (taken_ == known_) return false;
        }
        const io_uring_cqe& entry = queue.cqes[taken_ & queue.ring_mask];
        seen = {.about = entry.user_data, .res = entry.res, .flags = entry.flags};
        ++taken_;
        return true;
    }
    void give_back() noexcept { io_uring_smp_store_release(ring_.cq.khead, taken_); }
    [[nodiscard]] bool has_completions() const noexcept {
        return taken_ != io_uring_smp_load_acquire(ring_.cq.ktail);
    }

    [[nodiscard]] bool has_unsubmitted() const noexcept { return io_uring_sq_ready(&ring_) != 0; }
    /// The kernel has completions that only an enter brings into the queue.
    [[nodiscard]] bool kernel_has_more() const noexcept {
        return (IO_URING_READ_ONCE(*ring_.sq.kflags) &
                (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
    }

    [[nodiscard]] io_uring* get() noexcept { return &ring_; }
    [[nodiscard]] const io_uring* get() const noexcept { return &ring_; }

private:
    static constexpr unsigned smallest_entries = 8;
    static constexpr unsigned smallest_completions = 256;

    // What io_uring_submit() does first; liburing keeps it to itself.
    unsigned flush() noexcept {
        io_uring_sq& queue = ring_.sq;
        if (queue.sqe_head != queue.sqe_tail) {
            queue.sqe_head = queue.sqe_tail;
            io_uring_smp_store_release(queue.ktail, queue.sqe_tail);
        }
        return queue.sqe_tail - io_uring_smp_load_acquire(queue.khead);
    }

    io_uring ring_{};
    unsigned no_iowait_ = 0;
    unsigned taken_ = 0; // completions taken; where the next one is
    unsigned known_ = 0; // completions that are there, when last looked
};

/// The ring through which the kernel takes receive buffers.
class buffer_ring {
public:
    buffer_ring() noexcept = default;
    buffer_ring(const buffer_ring&) = delete;
    buffer_ring& operator=(const buffer_ring&) = delete;
    ~buffer_ring() {
        if (memory_ != nullptr) ::munmap(memory_, bytes_);
    }

    /// @param buffers  What it has room for, rounded up to a power of two.
    int open(ring& owner, std::uint32_t buffers, std::uint16_t group) noexcept {
        entries_ = std::bit_ceil(buffers);
        bytes_ = entries_ * sizeof(io_uring_buf);
        void* const memory =
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return -errno;
        memory_ = static_cast<io_uring_buf_ring*>(memory);
        io_uring_buf_reg registration{};
        registration.ring_addr = reinterpret_cast<std::uintptr_t>(memory);
        registration.ring_entries = entries_;
        registration.bgid = group;
        const int outcome = io_uring_register_buf_ring(owner.get(), &registration, 0);
        if (outcome == 0) io_uring_buf_ring_init(memory_);
        return outcome;
    }

    void add(void* memory, std::size_t size, std::uint32_t number) noexcept {
        io_uring_buf_ring_add(memory_, memory, static_cast<unsigned>(size),
                              static_cast<unsigned short>(number), io_uring_buf_ring_mask(entries_),
                              static_cast<int>(added_));
        ++added_;
    }
    /// Shows the kernel what was added. One store, once an enter.
    void publish() noexcept {
        if (added_ == 0) return;
        io_uring_buf_ring_advance(memory_, static_cast<int>(added_));
        added_ = 0;
    }

private:
    io_uring_buf_ring* memory_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint32_t entries_ = 0;
    std::uint32_t added_ = 0; // since publish()
};

// What a completion is about, in the low bits of its user_data; the rest is a pointer.
enum class subject : std::uintptr_t {
    operation,        // the operation itself
    operation_cancel, // a cancel that names it
    receive,          // a record's multishot receive
    accept,           // a record's multishot accept
    record_cancel,    // a cancel that names one of these
    wake_up,          // the eventfd
    wait,             // a wait for readiness, or a cancel that names it
};
constexpr std::uintptr_t subject_mask = 7;

std::uint64_t tagged(const void* pointer, subject about) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uintptr_t>(about);
}

class uring_backend final : public backend_driver, private receive_pool::listener {
public:
    explicit uring_backend(loop& owner) noexcept
        : loop_{owner} {}
    ~uring_backend() override {
        if (pool_ != nullptr) pool_->abandon();
    }

    result<> open(const loop_options& options) {
        const unsigned entries = std::clamp(options.queue_depth, 8U, 4096U);
        // Disabled: the thread that makes the loop need not be the one that runs it.
        if (const int outcome = ring_.open(entries, completion_entries, IORING_SETUP_R_DISABLED);
            outcome != 0) {
            return fail(error_from(outcome));
        }
        wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!wake_) return fail(error_from(-errno));
        auto pool = receive_pool::create(options.receive_pool, this);
        if (!pool) return fail(pool);
        pool_ = *pool;
        if (const int outcome = buffers_.open(ring_, pool_->count(), receive_group); outcome != 0) {
            return fail(error_from(outcome));
        }
        read_ahead_ = std::max<std::size_t>(options.read_ahead, 1);
        post_buffers(first_buffers);
        return {};
    }

    bool attempt_read(operation& op) noexcept override {
        if (op.record->never_ahead) return attempt_direct(op);
        if (op.kind == request::read_some && take_one_buffer(op)) [[likely]] {
            return true;
        }
        switch (op.kind) {
        case request::receive:
            return take_buffer(op);
        case request::accept:
            return take_connection(op);
        case request::perform_read:
            return op.perform();
        default:
            return take_bytes(op);
        }
    }

    bool attempt_write(operation& op) noexcept override {
        if (op.kind <= request::write_all) [[likely]] {
            return attempt_send(op);
        }
        // A connect is not tried first: a second connect(2) for the same connection would say
        // EALREADY.
        if (op.kind == request::connect) return false;
        return op.kind == request::perform_write ? op.perform() : attempt_rare_write(op);
    }

    void submit(operation& op) noexcept override {
        io_record& record = *op.record;
        switch (op.kind) {
        case request::read_some:
        case request::read_exact:
        case request::receive:
            want_receive(record);
            return;
        case request::receive_descriptors:
            submit_poll(op, POLLIN);
            return;
        case request::accept:
            want_accept(record);
            return;
        case request::write_some:
        case request::write_all:
            submit_send(op);
            return;
        case request::send_file:
        case request::send_pipe:
        case request::send_descriptors:
            submit_poll(op, POLLOUT);
            return;
        case request::connect:
            submit_connect(op);
            return;
        case request::perform_read:
            submit_poll(op, POLLIN);
            return;
        case request::perform_write:
            if (!op.sleeps()) submit_poll(op, POLLOUT);
            return;
        }
    }

    void cancel(operation& op, stop_reason reason) noexcept override {
        unstarve(*op.record);
        if (op.kernel_references != 0) {
            submit_cancel(op);
        } else if (reason == stop_reason::deadline) {
            // Attempted after the next poll: what has arrived by then counts.
            loop_.attempt_later(op);
        } else {
            loop_.complete(op, ECANCELED);
        }
    }

    void watch(readiness_operation& op) noexcept override {
        io_uring_sqe& entry = entry_for(op);
        io_uring_prep_poll_add(&entry, op.fd, op.waits_to == direction::read ? POLLIN : POLLOUT);
        entry.user_data = tagged(&op, subject::wait);
    }
    void unwatch(readiness_operation& op) noexcept override {
        io_uring_sqe& entry = entry_for(op);
        io_uring_prep_cancel64(&entry, tagged(&op, subject::wait), 0);
        entry.user_data = tagged(&op, subject::wait);
    }

    void retire(io_record& record) noexcept override {
        unstarve(record);
        drop_ahead(record);
        disarm(record);
        if (record.listening) finish_accepting(record);
    }

    void take_ahead(io_record& record, std::vector<std::byte>& unread) override {
        while (record.ahead_buffers != 0) {
            const std::uint32_t buffer = record.ahead_first;
            const receive_pool::slot& slot = pool_->at(buffer);
            const std::byte* const memory = pool_->memory(buffer);
            unread.insert(unread.end(), memory + slot.offset, memory + slot.length);
            give_back(pop_ahead(record));
        }
    }

    std::size_t catch_up() noexcept override {
        return enabled_ ? poll(std::chrono::nanoseconds{0}) : 0;
    }

    std::size_t poll(std::chrono::nanoseconds timeout) noexcept override {
        if (!enabled_) enable();
        if (embed_) drain(embed_.get());
        const bool waits = timeout.count() != 0;
        buffers_.publish();
        std::size_t total = 0;
        if (waits && aside_.empty() && !ring_.has_completions()) {
            enter(1, timeout == forever ? nullptr : &timeout);
        } else if (ring_.has_unsubmitted() || ring_.kernel_has_more()) {
            enter(0, nullptr);
        }
        total += reap();
        // A pass of the kernel is limited to 20 completions since Linux 6.13. Bounded here, so that
        // timers and posts get their turn.
        for (int round = 1; round < most_rounds && ring_.kernel_has_more(); ++round) {
            buffers_.publish();
            enter(0, nullptr);
            total += reap();
        }
        return total;
    }

    void wake() noexcept override {
        signal(wake_.get());
        // The kernel passes one eventfd's signal on to another only after an RCU grace period,
        // which takes milliseconds.
        if (const int handle = handle_.load(std::memory_order_acquire); handle >= 0) signal(handle);
    }
    void announce() noexcept override { signal(embed_.get()); }

    // The ring's own descriptor does not become readable for deferred work; an eventfd that is
    // registered with the ring does. It costs a little each completion, so only where asked for.
    int native_handle() noexcept override {
        if (!embed_) {
            embed_.reset(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
            const int fd = embed_.get();
            if (embed_) ring_.signal_completions(fd);
            handle_.store(fd, std::memory_order_release);
        }
        return embed_.get();
    }

    bool busy() const noexcept override { return references_ != 0; }
    backend kind() const noexcept override { return backend::io_uring; }
    receive_pool& pool() noexcept override { return *pool_; }

private:
    static constexpr unsigned completion_entries = 8192; // a backlog of connections must fit
    static constexpr std::uint32_t first_buffers = 64;
    static constexpr std::uint16_t receive_group = 0;
    static constexpr int most_rounds = 64;
    static constexpr std::uint16_t most_ahead_buffers = 64; // small messages fill few bytes of each
    static constexpr std::size_t most_ahead_connections = 64;

    // --- the ring ---

    /// At the first poll, or before it if the first turn fills the queue.
    void enable() noexcept {
        enabled_ = true;
        const int outcome = ring_.enable();
        SIMPLENET_EXPECTS(outcome == 0, "an io_uring loop was made for another thread");
        watch_wake_ups();
    }

    void watch_wake_ups() noexcept {
        io_uring_sqe& entry = next_entry();
        // Edge-triggered and never read: every write is a new completion.
        io_uring_prep_poll_multishot(&entry, wake_.get(), POLLIN);
        entry.user_data = tagged(nullptr, subject::wake_up);
    }

    void enter(unsigned wait_for, const std::chrono::nanoseconds* timeout) noexcept {
        if (!enabled_) enable();
        const int outcome = ring_.enter(wait_for, timeout);
        // ETIME, EINTR: the wait is over. EBUSY, EAGAIN: the kernel wants its completions reaped
        // first, and takes the entries next time. Nothing else is possible with our arguments.
        SIMPLENET_EXPECTS(outcome >= 0 || outcome == -ETIME || outcome == -EINTR ||
                              outcome == -EBUSY || outcome == -EAGAIN || outcome == -ENOMEM,
                          "io_uring_enter refused what the backend submitted");
    }

    static void signal(int eventfd) noexcept {
        const std::uint64_t one = 1;
        // Fails only if the counter is full, after 2^64 wake-ups.
        static_cast<void>(!::write(eventfd, &one, sizeof one));
    }
    static void drain(int eventfd) noexcept {
        std::uint64_t count = 0;
        static_cast<void>(!::read(eventfd, &count, sizeof count));
    }

    /// Room for one more entry, made by submitting the others if need be.
    io_uring_sqe& next_entry() noexcept {
        for (;;) {
            if (io_uring_sqe* const entry = ring_.next_entry()) return *entry;
            buffers_.publish();
            enter(0, nullptr);
            if (ring_.has_unsubmitted()) set_aside();
        }
    }

    /// The kernel takes no entry before its completions are reaped, and somebody up the stack may
    /// be dispatching one: they wait for reap(), in order.
    void set_aside() noexcept {
        completion seen;
        while (ring_.next_completion(seen))
            aside_.push_back(seen);
    }

    std::size_t reap() noexcept {
        std::size_t count = 0;
        completion seen;
        for (;; ++count) {
            if (!aside_.empty()) [[unlikely]] {
                seen = take_aside();
            } else if (!ring_.next_completion(seen)) {
                break;
            }
            dispatch(seen);
        }
        ring_.give_back();
        return count;
    }
    [[gnu::cold]] completion take_aside() noexcept {
        const completion oldest = aside_[aside_next_++];
        if (aside_next_ == aside_.size()) {
            aside_.clear();
            aside_next_ = 0;
        }
        return oldest;
    }

    void dispatch(const completion& seen) noexcept {
        void* const pointer = reinterpret_cast<void*>(seen.about & ~subject_mask);
        switch (static_cast<subject>(seen.about & subject_mask)) {
        case subject::operation:
            return operation_completed(*static_cast<operation*>(pointer), seen);
        case subject::operation_cancel:
            return released(*static_cast<operation*>(pointer));
        case subject::receive:
            return receive_completed(*static_cast<io_record*>(pointer), seen);
        case subject::accept:
            return accept_completed(*static_cast<io_record*>(pointer), seen);
        case subject::record_cancel:
            return released(*static_cast<io_record*>(pointer));
        case subject::wait:
            return wait_completed(*static_cast<readiness_operation*>(pointer), seen.res);
        case subject::wake_up:
            if ((seen.flags & IORING_CQE_F_MORE) == 0) watch_wake_ups();
            return;
        }
    }

    void hold(io_record& record) noexcept {
        ++record.kernel_references;
        ++references_;
    }
    void released(io_record& record) noexcept {
        --record.kernel_references;
        --references_;
        loop_.settle(record);
    }

    // --- operations that the kernel works on ---

    io_uring_sqe& entry_for(operation& op) noexcept {
        io_uring_sqe& entry = next_entry();
        ++op.kernel_references;
        hold(*op.record);
        return entry;
    }

    io_uring_sqe& entry_for(readiness_operation& op) noexcept {
        io_uring_sqe& entry = next_entry();
        ++op.kernel_references;
        ++references_;
        return entry;
    }

    /// Of the wait itself or of its cancel, which says 0, ENOENT or EALREADY as no wait does.
    void wait_completed(readiness_operation& op, int outcome) noexcept {
        if (outcome != 0 && outcome != -ENOENT && outcome != -EALREADY) op.outcome = outcome;
        --references_;
        if (--op.kernel_references != 0) return;
        if (op.outcome > 0) return loop_.complete(op, 0);
        if (op.outcome == -ECANCELED) return loop_.give_up(op);
        loop_.complete(op, -op.outcome);
    }

    void submit_send(operation& op) noexcept {
        io_uring_sqe& entry = entry_for(op);
        // One buffer even of a vectored write: the entry then points to nothing but the bytes.
        const const_buffer rest = next_bytes(op);
        const int flags = MSG_NOSIGNAL | (op.kind == request::write_all ? MSG_WAITALL : 0);
        io_uring_prep_send(&entry, op.record->fd, rest.data(),
                           std::min<std::size_t>(rest.size(), INT_MAX), flags);
        entry.user_data = tagged(&op, subject::operation);
    }

    void submit_connect(operation& op) noexcept {
        io_uring_sqe& entry = entry_for(op);
        io_uring_prep_connect(&entry, op.record->fd, reinterpret_cast<const sockaddr*>(op.data),
                              static_cast<socklen_t>(op.size));
        entry.user_data = tagged(&op, subject::operation);
    }

    /// A receive of no more than `op` asks for: into the caller's own memory, or a receive() into a
    /// buffer that the kernel takes when there is something.
    void submit_receive(operation& op, int flags = 0) noexcept {
        io_uring_sqe& entry = entry_for(op);
        if (op.kind == request::receive) {
            io_uring_prep_recv(&entry, op.record->fd, nullptr, 0, flags);
            entry.flags |= IOSQE_BUFFER_SELECT;
            entry.buf_group = receive_group;
        } else {
            io_uring_prep_recv(&entry, op.record->fd, op.data + op.moved,
                               std::min<std::size_t>(op.size - op.moved, INT_MAX), flags);
        }
        entry.user_data = tagged(&op, subject::operation);
    }

    /// For what no entry can do, or does better (docs/development/decisions/0014): to be attempted
    /// when the socket is ready.
    void submit_poll(operation& op, unsigned events) noexcept {
        io_uring_sqe& entry = entry_for(op);
        io_uring_prep_poll_add(&entry, op.record->fd, events);
        entry.user_data = tagged(&op, subject::operation);
    }

    void submit_cancel(operation& op) noexcept {
        io_uring_sqe& entry = entry_for(op);
        io_uring_prep_cancel64(&entry, tagged(&op, subject::operation), 0);
        entry.user_data = tagged(&op, subject::operation_cancel);
    }

    void operation_completed(operation& op, const completion& seen) noexcept {
        io_record& record = *op.record;
        op.outcome = seen.res;
        if (!is_read(op.kind)) {
            record.writable = true;
        } else if (record.never_ahead) {
            record.readable = (seen.flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
        }
        if ((seen.flags & IORING_CQE_F_BUFFER) != 0) {
            --posted_;
            const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
            if (seen.res > 0) {
                op.lease = buffer;
                op.data = pool_->memory(buffer);
            } else {
                post_buffer(buffer);
            }
        } else if (op.kind == request::receive && posted_ != 0) {
            serve_starved(); // it may have been next for a buffer, and did not take it
        }
        released(op);
    }

    /// One entry less names `op`. When none does, the kernel has forgotten it and its buffer.
    void released(operation& op) noexcept {
        io_record& record = *op.record;
        if (--op.kernel_references == 0) finish(op);
        released(record);
    }

    void finish(operation& op) noexcept {
        if (op.kind == request::perform_read || op.kind == request::perform_write) {
            return poll_finished(op);
        }
        const int outcome = op.outcome;
        const bool wanted = op.stopped == stop_reason::none && !op.record->closing;
        if (outcome == -EAGAIN || outcome == -EINTR) {
            if (wanted) return submit_again(op);
            return loop_.complete(op, ECANCELED);
        }
        if (outcome == -ECANCELED && op.stopped == stop_reason::deadline &&
            (is_write(op.kind) || op.record->never_ahead)) {
            // The last attempt counts: there may have been room, or bytes, before the cancel was
            // worked on.
            if (op.kind == request::receive) return submit_receive(op, MSG_DONTWAIT);
            return loop_.attempt_later(op);
        }
        if (outcome == -ENOBUFS && op.kind == request::receive) {
            if (!wanted) return loop_.complete(op, ECANCELED);
            return post_buffers(more_buffers) ? submit_receive(op) : starve(*op.record);
        }
        if (outcome < 0) return loop_.complete(op, -outcome);
        switch (op.kind) {
        case request::connect:
            return loop_.complete(op, connected(*op.record));
        case request::write_some:
        case request::write_all: {
            const bool done = advance_write(op, static_cast<std::size_t>(outcome));
            if (done || op.kind == request::write_some) return loop_.complete(op, 0);
            break;
        }
        case request::read_some:
        case request::read_exact:
            if (outcome == 0)
                return loop_.complete(op, op.record->closing ? ECANCELED : end_of_stream_error);
            op.moved += static_cast<std::size_t>(outcome);
            if (op.moved == op.size || op.kind == request::read_some) return loop_.complete(op, 0);
            break;
        case request::receive:
            if (outcome == 0)
                return loop_.complete(op, op.record->closing ? ECANCELED : end_of_stream_error);
            op.moved = static_cast<std::size_t>(outcome);
            return loop_.complete(op, 0);
        case request::receive_descriptors:
        case request::send_file:
        case request::send_pipe:
        case request::send_descriptors:
            return loop_.attempt_later(op); // it is ready
        default:                            // the others never have an entry of their own
            return loop_.complete(op, 0);
        }
        // Some of it moved, and there is more to do.
        if (!wanted) return loop_.complete(op, ECANCELED);
        loop_.attempt_later(op);
    }

    void poll_finished(operation& op) noexcept {
        const bool canceled = op.outcome == -ECANCELED && op.stopped != stop_reason::deadline;
        if (canceled || op.record->closing) return loop_.complete(op, ECANCELED);
        (is_read(op.kind) ? op.record->readable : op.record->writable) = true;
        loop_.attempt_later(op); // which decides: also about a stop that came meanwhile
    }

    void submit_again(operation& op) noexcept {
        if (is_read(op.kind) && op.kind != request::receive_descriptors) return submit_receive(op);
        submit(op);
    }

    static int connected(io_record& record) noexcept {
        const auto outcome = connect_outcome(record.fd);
        return outcome ? 0 : outcome.error().value();
    }

    // --- receiving ---

    /// A read waits on `record`: sees to it that the kernel receives for it.
    void want_receive(io_record& record) noexcept {
        if (record.armed || record.starved || record.closing || loop_.dying) return;
        if (record.end != 0 || record.ahead_buffers != 0) return notify(record);
        arm_receive(record);
    }

    void arm_receive(io_record& record) noexcept {
        if (record.never_ahead) return submit_receive(*record.reader);
        io_uring_sqe& entry = next_entry();
        io_uring_prep_recv_multishot(&entry, record.fd, nullptr, 0, 0);
        entry.flags |= IOSQE_BUFFER_SELECT;
        entry.buf_group = receive_group;
        entry.user_data = tagged(&record, subject::receive);
        record.armed = record.receiving = true;
        hold(record);
    }

    /// Stops what the kernel does for `record` by itself.
    void disarm(io_record& record) noexcept {
        if (!record.armed || record.disarming) return;
        record.disarming = true;
        io_uring_sqe& entry = next_entry();
        const subject about = record.listening ? subject::accept : subject::receive;
        io_uring_prep_cancel64(&entry, tagged(&record, about), 0);
        entry.user_data = tagged(&record, subject::record_cancel);
        hold(record);
    }

    void receive_completed(io_record& record, const completion& seen) noexcept {
        constexpr unsigned usual = IORING_CQE_F_MORE | IORING_CQE_F_BUFFER;
        if ((seen.flags & usual) != usual || seen.res <= 0 || record.closing) [[unlikely]] {
            return unusual_receive_completed(record, seen);
        }
        --posted_;
        push_ahead(record, seen.flags >> IORING_CQE_BUFFER_SHIFT,
                   static_cast<std::uint32_t>(seen.res));
        record.readable = true;
        notify(record);
        if (is_far_ahead(record)) [[unlikely]]
            disarm(record);
    }
    [[nodiscard]] bool is_far_ahead(const io_record& record) const noexcept {
        return record.ahead_bytes >= read_ahead_ || record.ahead_buffers >= most_ahead_buffers;
    }

    [[gnu::noinline]] void unusual_receive_completed(io_record& record,
                                                     const completion& seen) noexcept {
        if ((seen.flags & IORING_CQE_F_MORE) == 0)
            record.armed = record.receiving = record.disarming = false;
        if ((seen.flags & IORING_CQE_F_BUFFER) != 0) {
            --posted_;
            const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
            if (seen.res > 0 && (!record.closing || record.keep_descriptor)) {
                push_ahead(record, buffer, static_cast<std::uint32_t>(seen.res));
            } else {
                post_buffer(buffer);
            }
        }
        bool starves = false;
        if (seen.res == 0) {
            record.end = end_of_stream_error;
        } else if (seen.res == -ENOBUFS) {
            starves = true;
        } else if (seen.res < 0 && seen.res != -ECANCELED && seen.res != -EAGAIN &&
                   seen.res != -EINTR) {
            record.end = -seen.res;
        }
        record.readable = record.ahead_buffers != 0 || record.end != 0;
        if (!record.closing) {
            if (record.readable) {
                notify(record);
            } else if (!record.armed && is_waiting(record.reader)) {
                if (starves && !post_buffers(more_buffers)) {
                    starve(record);
                } else {
                    want_receive(record);
                }
            }
            if (is_far_ahead(record)) disarm(record);
        }
        if ((seen.flags & IORING_CQE_F_MORE) != 0) return;
        // It may have been next for a buffer, and did not take it.
        if (posted_ != 0) serve_starved();
        released(record);
    }

    /// Every buffer is held: waits for one to come back, unless the reader brought memory.
    void starve(io_record& record) noexcept {
        if (record.reader->kind != request::receive) return submit_receive(*record.reader);
        // One came back between the kernel's refusal and now, and there may be no other.
        if (posted_ != 0) return arm_receive(record);
        record.starved = true;
        starved_.push_back(record);
    }
    static void unstarve(io_record& record) noexcept {
        record.starved = false;
        static_cast<list_hook<starved_tag>&>(record).unlink();
    }
    /// The kernel has a buffer: for the stream that waits longest.
    void serve_starved() noexcept {
        if (starved_.empty()) return;
        io_record& record = starved_.front();
        unstarve(record);
        want_receive(record);
    }

    static bool is_waiting(const operation* op) noexcept {
        return op != nullptr && op->phase == operation::state::waiting &&
               op->kernel_references == 0;
    }
    void notify(io_record& record) noexcept {
        if (is_waiting(record.reader)) loop_.attempt_later(*record.reader);
    }

    /// Of a record that never receives ahead: what is there now, if it is known to be readable.
    static bool attempt_direct(operation& op) noexcept {
        io_record& record = *op.record;
        if (op.kind == request::receive_descriptors) return attempt_receive_descriptors(op);
        if (op.kind == request::receive) {
            record.readable = false; // only the kernel has buffers
            return false;
        }
        if (op.moved == op.size) return true;
        const std::size_t size = op.size - op.moved;
        const ssize_t count = sys::recv(record.fd, op.data + op.moved, size);
        // An entry would find what is left, if anything is.
        record.readable = count > 0 && static_cast<std::size_t>(count) == size;
        if (count == -EAGAIN) return false;
        if (count > 0) {
            op.moved += static_cast<std::size_t>(count);
            return op.moved == op.size || op.kind == request::read_some;
        }
        op.error = count == 0 ? end_of_stream_error : static_cast<int>(-count);
        return true;
    }

    void push_ahead(io_record& record, std::uint32_t buffer, std::uint32_t length) noexcept {
        receive_pool::slot& slot = pool_->at(buffer);
        slot = {.next = receive_pool::none, .offset = 0, .length = length};
        if (record.ahead_buffers == 0) {
            record.ahead_first = buffer;
        } else {
            pool_->at(record.ahead_last).next = buffer;
        }
        record.ahead_last = buffer;
        ++record.ahead_buffers;
        record.ahead_bytes += length;
    }
    std::uint32_t pop_ahead(io_record& record) noexcept {
        const std::uint32_t buffer = record.ahead_first;
        const receive_pool::slot& slot = pool_->at(buffer);
        record.ahead_first = slot.next;
        record.ahead_bytes -= slot.length - slot.offset;
        --record.ahead_buffers;
        return buffer;
    }
    void drop_ahead(io_record& record) noexcept {
        if (record.listening) return drop_connections(record);
        if (record.keep_descriptor) return; // release() takes it along
        while (record.ahead_buffers != 0)
            give_back(pop_ahead(record));
    }

    /// The end of what was received ahead: the error behind it, or nothing yet.
    bool at_end(operation& op) noexcept {
        io_record& record = *op.record;
        record.readable = false;
        if (record.end == 0) return false;
        op.error = record.end;
        if (record.end == end_of_stream_error) {
            record.readable = true; // and stays the end
        } else {
            record.end = 0; // an error is reported once, as recv(2) and accept(2) do
        }
        return true;
    }

    /// What nearly every read_some() is: all of one buffer fits, and nothing is behind it.
    bool take_one_buffer(operation& op) noexcept {
        io_record& record = *op.record;
        if (record.ahead_buffers != 1) return false;
        const std::uint32_t buffer = record.ahead_first;
        const receive_pool::slot& slot = pool_->at(buffer);
        const std::size_t count = slot.length - slot.offset;
        if (count > op.size) return false;
        std::memcpy(op.data, pool_->memory(buffer) + slot.offset, count);
        op.moved = count;
        record.ahead_buffers = 0;
        record.ahead_bytes = 0;
        record.readable = record.end != 0;
        give_back(buffer);
        return true;
    }

    bool take_bytes(operation& op) noexcept {
        io_record& record = *op.record;
        while (record.ahead_buffers != 0 && op.moved < op.size) {
            const std::uint32_t buffer = record.ahead_first;
            receive_pool::slot& slot = pool_->at(buffer);
            const std::size_t count =
                std::min<std::size_t>(op.size - op.moved, slot.length - slot.offset);
            std::memcpy(op.data + op.moved, pool_->memory(buffer) + slot.offset, count);
            op.moved += count;
            if (slot.offset + count == slot.length) {
                give_back(pop_ahead(record));
            } else {
                slot.offset += static_cast<std::uint32_t>(count);
                record.ahead_bytes -= count;
            }
        }
        if (op.moved == op.size || (op.moved != 0 && op.kind == request::read_some)) {
            record.readable = record.ahead_buffers != 0 || record.end != 0;
            return true;
        }
        return at_end(op);
    }

    bool take_buffer(operation& op) noexcept {
        io_record& record = *op.record;
        if (record.ahead_buffers == 0) return at_end(op);
        const std::uint32_t buffer = pop_ahead(record);
        const receive_pool::slot& slot = pool_->at(buffer);
        op.lease = buffer;
        op.data = pool_->memory(buffer) + slot.offset;
        op.moved = slot.length - slot.offset;
        record.readable = record.ahead_buffers != 0 || record.end != 0;
        return true;
    }

    // --- buffers ---

    void post_buffer(std::uint32_t buffer) noexcept {
        buffers_.add(pool_->memory(buffer), receive_pool::buffer_size, buffer);
        ++posted_;
    }
    /// Gives the kernel up to `count` buffers that it never had. False if there are none.
    bool post_buffers(std::uint32_t count) noexcept {
        for (std::uint32_t done = 0; done < count; ++done) {
            const std::uint32_t buffer = pool_->claim();
            if (buffer == receive_pool::none) return done != 0;
            post_buffer(buffer);
        }
        return true;
    }
    /// A buffer is empty again: to the kernel, and to the stream that waits longest.
    void give_back(std::uint32_t buffer) noexcept {
        post_buffer(buffer);
        serve_starved();
    }
    void buffer_returned() noexcept override { give_back(pool_->claim()); }

    // --- accepting ---

    void want_accept(io_record& record) noexcept {
        if (record.armed || record.accepting->pausing || record.closing || loop_.dying) return;
        io_uring_sqe& entry = next_entry();
        io_uring_prep_multishot_accept(&entry, record.fd, nullptr, nullptr,
                                       SOCK_CLOEXEC | SOCK_NONBLOCK);
        entry.user_data = tagged(&record, subject::accept);
        record.armed = record.receiving = true;
        hold(record);
    }

    void accept_completed(io_record& record, const completion& seen) noexcept {
        accept_state& accepting = *record.accepting;
        const bool more = (seen.flags & IORING_CQE_F_MORE) != 0;
        if (!more) record.armed = record.receiving = record.disarming = false;
        if (seen.res >= 0) {
            accepting.pause = {};
            if (record.closing) {
                close_descriptor(seen.res);
            } else {
                accepting.ahead.push_back(seen.res);
                if (accepting.ahead.size() - accepting.next >= most_ahead_connections)
                    disarm(record);
            }
        } else if (is_shortage(-seen.res)) {
            if (!record.closing) loop_.pause_accepting(record);
        } else if (seen.res != -ECANCELED && seen.res != -EAGAIN && seen.res != -EINTR &&
                   !sys::is_error_of_the_connection(seen.res)) {
            record.end = -seen.res;
        }
        record.readable = accepting.next != accepting.ahead.size() || record.end != 0;
        if (!record.closing) {
            if (record.readable) {
                notify(record);
            } else if (is_waiting(record.reader)) {
                want_accept(record);
            }
        }
        if (!more) released(record);
    }

    /// An accept in the kernel keeps the socket listening, so its end is not left for later: nobody
    /// is to connect any more once close() has returned, and the address is free.
    void finish_accepting(io_record& record) noexcept {
        for (int round = 0; record.armed && round < 4; ++round) {
            enter(0, nullptr);
            reap();
        }
    }

    bool take_connection(operation& op) noexcept {
        io_record& record = *op.record;
        accept_state& accepting = *record.accepting;
        if (accepting.next == accepting.ahead.size()) return at_end(op);
        op.lease = static_cast<std::uint32_t>(accepting.ahead[accepting.next++]);
        op.moved = 1;
        if (accepting.next == accepting.ahead.size()) {
            accepting.ahead.clear();
            accepting.next = 0;
        }
        record.readable = accepting.next != accepting.ahead.size() || record.end != 0;
        return true;
    }

    static void drop_connections(io_record& record) noexcept {
        accept_state& accepting = *record.accepting;
        while (accepting.next != accepting.ahead.size()) {
            close_descriptor(accepting.ahead[accepting.next++]);
        }
        accepting.ahead.clear();
        accepting.next = 0;
    }

    static constexpr std::uint32_t more_buffers = 64;

    loop& loop_;
    buffer_ring buffers_; // outlives the ring, which uses it
    ring ring_;
    receive_pool* pool_ = nullptr;
    unique_fd wake_;
    unique_fd embed_;              // readable when a completion is due; only for native_handle()
    std::atomic<int> handle_ = -1; // the same, for wake()
    bool enabled_ = false;
    std::size_t read_ahead_ = 0; // bytes
    std::size_t posted_ = 0;     // buffers that the kernel has
    std::size_t references_ = 0; // entries in the kernel that name an operation or a record
    intrusive_list<io_record, starved_tag> starved_; // first come first served
    std::vector<completion> aside_;                  // reaped where they could not be dispatched
    std::size_t aside_next_ = 0;
};

/// One multishot receive over a buffer ring, and one plain receive that has to wait.
int try_uring() noexcept {
    constexpr std::uint64_t multishot = 1;
    constexpr std::uint64_t plain = 2;
    alignas(64) std::byte memory[2][64];
    buffer_ring buffers;
    ring probe;
    if (const int outcome = probe.open(8, 16, 0); outcome != 0) return outcome;
    if (const int outcome = buffers.open(probe, 2, 0); outcome != 0) return outcome;
    buffers.add(memory[0], sizeof memory[0], 0);
    buffers.add(memory[1], sizeof memory[1], 1);
    buffers.publish();

    int fds[2];
    // Nonblocking, as all our sockets are: receives have to wait on them all the same.
    if (const int outcome = sys::socketpair(SOCK_STREAM, sys::mode::nonblocking, fds);
        outcome < 0) {
        return outcome;
    }
    const unique_fd left{fds[0]};
    const unique_fd right{fds[1]};
    std::byte into{};
    io_uring_sqe* entry = probe.next_entry();
    io_uring_prep_recv_multishot(entry, left.get(), nullptr, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->user_data = multishot;
    entry = probe.next_entry();
    io_uring_prep_recv(entry, right.get(), &into, 1, 0);
    entry->user_data = plain;
    if (const int outcome = probe.enter(0, nullptr); outcome < 0) return outcome;
    completion seen{};
    if (probe.next_completion(seen)) return seen.res < 0 ? seen.res : -ENOSYS; // did not wait

    const std::byte one{1};
    if (sys::send(left.get(), &one, 1) != 1 || sys::send(right.get(), &one, 1) != 1) return -EIO;
    const std::chrono::nanoseconds limit = std::chrono::seconds{1};
    for (unsigned received = 0; received != 2; ++received) {
        while (!probe.next_completion(seen)) {
            const int outcome = probe.enter(1, &limit);
            if (outcome < 0 && outcome != -EINTR) return outcome;
        }
        constexpr unsigned expected = IORING_CQE_F_MORE | IORING_CQE_F_BUFFER;
        if (seen.res < 0) return seen.res;
        if (seen.res != 1) return -ENOSYS;
        if (seen.about == multishot && (seen.flags & expected) != expected) return -ENOSYS;
    }
    return 0;
}

} // namespace

result<> probe_uring() noexcept {
    constexpr int unknown = 1;
    static std::atomic<int> verdict = unknown;
    int outcome = verdict.load(std::memory_order_relaxed);
    if (outcome == unknown) {
        outcome = try_uring();
        // A shortage of descriptors says nothing about io_uring.
        if (outcome == -EMFILE || outcome == -ENFILE) return fail(error_from(outcome));
        verdict.store(outcome, std::memory_order_relaxed);
    }
    if (outcome != 0) return fail(error_from(outcome));
    return {};
}

result<std::unique_ptr<backend_driver>> make_uring_backend(loop& owner,
                                                           const loop_options& options) {
    auto made = std::make_unique<uring_backend>(owner);
    if (auto opened = made->open(options); !opened) return fail(opened);
    return made;
}

} // namespace simplenet::inline v0::detail
