#pragma once
// backend, loop_options and loop_metrics: how a loop is created, and what it has done. Layer io.

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
    /// io_uring if this process can use it, else epoll; decided once per process, by trying. The
    /// environment variable `SIMPLENET_BACKEND` (`epoll` or `io_uring`) overrides it.
    automatic,
    epoll,
    io_uring,
};

/// The name as in `SIMPLENET_BACKEND`; "automatic" for automatic.
[[nodiscard]] const char* to_string(backend which) noexcept;

/// Whether loops of this process can use `which`, decided once per process, by trying. Always true
/// for epoll and automatic. Any thread.
///
/// @par Errors
/// `event_loop::create()` reports all of these as one error, which equals
/// `errc::backend_unavailable` and names the reason in its message. Here the reason is the error:
/// - `std::errc::operation_not_permitted`: a sandbox, or the sysctl kernel.io_uring_disabled.
/// - `std::errc::function_not_supported`, `std::errc::invalid_argument`: the kernel is too old.
/// - `std::errc::not_enough_memory`: RLIMIT_MEMLOCK leaves none.
/// - `errc::backend_unavailable`: this build of the library does not contain the backend.
/// - Any other error of io_uring_setup(2).
///
/// @par Cost
/// A few system calls the first time.
[[nodiscard]] result<> probe_backend(backend which) noexcept;

struct loop_event;
struct stall_report;

/// How a loop is created. Copyable; the defaults suit a server.
struct loop_options {
    // Qualified: here `backend` is also the name of the member.
    simplenet::backend backend = simplenet::backend::automatic;
    /// io_uring: submission entries, 8 to 4096, rounded up to a power of two. When the queue is
    /// full it is submitted early, at the price of a system call.
    unsigned queue_depth = 256;
    /// io_uring: completions that the ring has room for, 16 to 65536, rounded up to a power of two
    /// and to queue_depth. 16 bytes each. The kernel keeps completions that do not fit, at the
    /// price of system calls. If it has no memory to keep them they are lost, and the process stops
    /// with a message.
    unsigned completion_depth = 8192; // a backlog of connections fits
    /// Before sleeping, poll for events repeatedly for at most this long, as long as most waits are
    /// no longer than that. 0 or less: never.
    ///
    /// A message that arrives meanwhile is seen within a microsecond, instead of after the 20 or
    /// more that waking a thread takes; a post from another thread makes no system call. The price
    /// is a processor that is busy while the loop waits, so use it only for loops that have a
    /// processor to themselves. Some tens of microseconds are a good length. The loop sleeps at
    /// once if fewer than four of its last eight waits were that short (or twice that, if it slept:
    /// the wait then includes waking up). Timers, stops and posts are as prompt as without it.
    std::chrono::nanoseconds busy_poll{0};
    /// Bytes that a stream may receive ahead of receive() and read_some(), at least 1. On io_uring
    /// the limit is applied after a pass of at most 32 buffers, so up to 512 KiB may come on top.
    std::size_t read_ahead = std::size_t{64} * 1024;
    /// Bytes that the pool of receive buffers may grow to, rounded up to buffers of 16 KiB, at
    /// least two. When leases and, on io_uring, data received ahead hold the whole pool, receive()
    /// allocates as much as there is to receive, 16 KiB at most, and frees it with the lease: a
    /// reader never waits for memory that others hold (loop_metrics::receive_pool_overflow).
    /// Buffers that were never used take no memory. Addresses are reserved for all of them, and
    /// count as committed if vm.overcommit_memory is 2 (proc(5)).
    std::size_t receive_pool = std::size_t{16} * 1024 * 1024;
    /// run() on the main thread: SIGINT and SIGTERM stop main, a second one kills the process. A
    /// signal that the program handles, ignores or blocks is left alone. See run().
    bool handle_signals = true;
    /// For tests: the address of a testing::manual_clock, which outlives the loop. Null: the
    /// monotonic clock.
    detail::virtual_time* clock = nullptr;
    /// Called with an exception of a detached task. Null: std::terminate.
    void (*on_unhandled)(std::exception_ptr) = nullptr;
    /// On this signal (for example SIGUSR1) the loop prints its tasks to standard error in its next
    /// turn, as dump_tasks() does. 0: on none. Several loops may share a signal. The previous
    /// action of the signal is restored when the last of them is gone.
    int dump_signal = 0;
    /// A turn of the loop that takes longer is reported to `on_stall`, once. At least 1 ms; 0: no
    /// turn is reported. One thread of the process watches all loops with a threshold.
    std::chrono::nanoseconds stall_threshold{0};
    /// Called on the watching thread with a description of what the loop was doing; must not throw.
    /// Null: prints it to standard error, unless there is an `on_event`.
    void (*on_stall)(const stall_report&) = nullptr;
    /// Sent to a stalled thread to record its stack; default SIGURG, which is otherwise ignored. It
    /// interrupts the blocking calls that signals interrupt. 0, or a signal that cannot be handled:
    /// no signal, and no stack. A handler that the program has installed is still called for other
    /// signals of that number. It is restored when the last loop that uses the signal is gone,
    /// unless yet another handler was installed meanwhile.
    int stall_signal = SIGURG;
    /// Called with what an operator may want to know, for a log: pauses of accepting, stalls,
    /// connections that change loops or are refused. Must not throw.
    ///
    /// Called on the thread where it happens, in the middle of the loop's work: so it may post and
    /// stop, but uses no sockets or tasks of the loop, and returns soon. Stalls are told on the
    /// watching thread. Several loops with the same hook may call it at the same time.
    void (*on_event)(const loop_event& event, void* context) = nullptr;
    void* event_context = nullptr; // outlives the loop
};

/// What a loop has done since it was created, and what it holds.
struct loop_metrics {
    std::uint64_t turns = 0;             // passes through the loop
    std::uint64_t completions = 0;       // events and completions that the kernel reported
    std::uint64_t wake_ups = 0;          // system calls by which other threads woke it
    std::uint64_t stalls = 0;            // turns over stall_threshold
    std::uint64_t accept_pauses = 0;     // pauses of accept() for lack of descriptors or memory
    std::size_t live_tasks = 0;          // spawned and not ended
    std::size_t live_operations = 0;     // I/O operations that wait
    std::ptrdiff_t live_frames = 0;      // coroutine frames allocated and not freed on this thread
    std::size_t timers = 0;              // sleeps and time limits that are armed
    std::size_t open_descriptors = 0;    // sockets that the loop owns
    std::size_t receive_pool_leased = 0; // leases of receive() that are held
    std::uint64_t receive_pool_overflow = 0; // receives that had to take memory from the heap
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
