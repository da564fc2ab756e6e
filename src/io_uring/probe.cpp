// Whether io_uring works here. Layer io_uring.

#include "io_uring/make_backend.hpp"
#include "io_uring/ring.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>

namespace simplenet::v0::detail {

namespace {

using uring::buffer_ring;
using uring::completion;

/// One multishot receive over a buffer ring, and one plain receive that has to wait.
int try_uring() noexcept {
    constexpr std::uint64_t multishot = 1;
    constexpr std::uint64_t plain = 2;
    alignas(64) std::byte memory[2][64];
    buffer_ring buffers;
    uring::ring probe;
    if (const int outcome = probe.open(8, 16, 0); outcome != 0) return outcome;
    if (const int outcome = buffers.open(probe, 2, 0); outcome != 0) return outcome;
    buffers.add(memory[0], sizeof memory[0], 0);
    buffers.add(memory[1], sizeof memory[1], 1);
    buffers.publish();

    int fds[2];
    // Nonblocking, like all our sockets: receives must nevertheless wait on them.
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
        // A lack of descriptors says nothing about io_uring.
        if (outcome == -EMFILE || outcome == -ENFILE) return fail(sys::error_from(outcome));
        verdict.store(outcome, std::memory_order_relaxed);
    }
    if (outcome != 0) return fail(sys::error_from(outcome));
    return {};
}

} // namespace simplenet::v0::detail
