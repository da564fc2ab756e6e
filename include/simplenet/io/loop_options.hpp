#pragma once
// backend, loop_options and loop_metrics: how a loop is made, and what it has done. Layer io.

#include <simplenet/core/error.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {
class virtual_time;
} // namespace detail

inline namespace runtime {

/// How a loop talks to the kernel.
enum class backend : std::uint8_t {
    /// io_uring where this process can have it, else epoll; decided once per process, by trying.
    /// The environment variable `SIMPLENET_BACKEND` (`epoll` or `io_uring`) overrides it.
    automatic,
    epoll,
    io_uring,
};

/// The name as it is written in `SIMPLENET_BACKEND`; "automatic" for automatic.
[[nodiscard]] const char* to_string(backend which) noexcept;

/// Whether loops of this process can have `which`, decided once per process, by trying. Always true
/// of epoll and of automatic. Any thread.
///
/// @par Errors
/// `event_loop::create()` has one error for all of these, which equals `errc::backend_unavailable`
/// and says why in its message; here the reason is the error:
/// - `std::errc::operation_not_permitted`: a sandbox, or the sysctl kernel.io_uring_disabled.
/// - `std::errc::function_not_supported`, `std::errc::invalid_argument`: the kernel is too old.
/// - `std::errc::not_enough_memory`: RLIMIT_MEMLOCK leaves none.
/// - `errc::backend_unavailable`: this build of the library does not have it.
/// - Anything else that io_uring_setup(2) reports.
///
/// @par Cost
/// A few system calls, the first time.
[[nodiscard]] result<> probe_backend(backend which) noexcept;

struct stall_report;

/// How a loop is made. Copyable; every default suits a server.
struct loop_options {
    // Qualified: here `backend` is also the name of the member.
    simplenet::backend backend = simplenet::backend::automatic;
    /// io_uring: submission entries, 8 to 4096, rounded up to a power of two. Entries that do not
    /// fit are submitted early, at the price of a system call.
    unsigned queue_depth = 256;
    /// io_uring: completions that the ring has room for, 16 to 65536, rounded up to a power of two
    /// and to queue_depth. 16 bytes each. More than that are not lost: the kernel keeps them, at
    /// the price of system calls. Without memory for that it loses them, which stops the process
    /// with a message.
    unsigned completion_depth = 8192; // a backlog of connections fits
    /// Look for events at most so long before sleeping, again and again, while most waits are not
    /// longer than that. 0 or less: never.
    ///
    /// A message that comes meanwhile is seen within a microsecond, and not after the 20 or more
    /// that it takes to wake a thread up; a post from another thread makes no system call. The
    /// price is a processor that works while it waits, so only for loops that have one to
    /// themselves; some tens of microseconds are a good length. Where fewer than four of the last
    /// eight waits were that short (twice that where it slept, as waking up is a part of it) the
    /// loop sleeps at once. Timers, stops and posts are as prompt as without it.
    std::chrono::nanoseconds busy_poll{0};
    /// Bytes that a stream may receive ahead of receive() and read_some(), at least 1. On io_uring
    /// the kernel learns of it after a pass of at most 32 buffers, so 512 KiB may come on top.
    std::size_t read_ahead = std::size_t{64} * 1024;
    /// Bytes that the pool of receive buffers may grow to, rounded up to buffers of 16 KiB, at
    /// least two. When leases and, on io_uring, what was received ahead hold all of it, receive()
    /// allocates as much as there is to receive, 16 KiB at most, and frees it with the lease: a
    /// reader never waits for memory that others hold (loop_metrics::receive_pool_overflow).
    /// Buffers that were never used take no memory. Addresses are reserved for all, and count as
    /// committed where vm.overcommit_memory is 2 (proc(5)).
    std::size_t receive_pool = std::size_t{16} * 1024 * 1024;
    /// run() on the main thread: SIGINT and SIGTERM stop main, the second one kills. A signal that
    /// the program has a handler for, ignores or blocks is left alone. See run().
    bool handle_signals = true;
    /// For tests: the address of a testing::manual_clock, which outlives the loop. Null: the
    /// monotonic clock.
    detail::virtual_time* clock = nullptr;
    /// Called with an exception of a detached task. Null: std::terminate.
    void (*on_unhandled)(std::exception_ptr) = nullptr;
    /// On this signal (SIGUSR1, say) the loop prints its tasks to standard error, as dump_tasks()
    /// does, when it next turns. 0: on none. Several loops may share a signal. What the signal did
    /// before is restored when the last of them has gone.
    int dump_signal = 0;
    /// A turn of the loop that takes longer is reported to `on_stall`, once a turn. 0: none is. At
    /// least 1 ms. One thread of the process watches all loops that want it.
    std::chrono::nanoseconds stall_threshold{0};
    /// Called on the watching thread, with what the loop was doing; must not throw. Null: prints it
    /// to standard error.
    void (*on_stall)(const stall_report&) = nullptr;
    /// Sent to a stalled thread to learn what it does; default SIGURG, which is otherwise ignored.
    /// Blocking calls that signals interrupt are interrupted. 0, or a signal that cannot be
    /// handled: no signal, and no stack. A handler that the program has for it is called for every
    /// other signal of that number, and is restored when the last loop that uses it has gone,
    /// unless another one took its place.
    int stall_signal = SIGURG;
};

/// What a loop has done since it was made, and what it holds.
struct loop_metrics {
    std::uint64_t turns = 0;             // passes through the loop
    std::uint64_t completions = 0;       // events and completions that the kernel reported
    std::uint64_t wake_ups = 0;          // system calls by which other threads woke it
    std::uint64_t stalls = 0;            // turns over stall_threshold
    std::uint64_t accept_pauses = 0;     // accepting that stopped for want of descriptors or memory
    std::size_t live_tasks = 0;          // spawned and not ended
    std::size_t live_operations = 0;     // I/O operations that wait
    std::ptrdiff_t live_frames = 0;      // coroutine frames allocated and not freed on this thread
    std::size_t timers = 0;              // armed; counted one by one when asked for
    std::size_t open_descriptors = 0;    // sockets that the loop owns
    std::size_t receive_pool_leased = 0; // leases of receive() that are held
    std::uint64_t receive_pool_overflow = 0; // receives that had to take memory from the heap
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
