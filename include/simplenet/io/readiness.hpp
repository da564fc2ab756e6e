#pragma once
// async_wait_readable and async_wait_writable: waiting for descriptors that other code owns, such
// as those of inotify, pidfd, signalfd or libpq. Layer io.

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

enum class direction : std::uint8_t { read, write };

/// Awaitable of the two functions below; the contract is documented there.
///
/// Invariant: while `kernel_references` is not 0 the kernel knows its address, and while it is
/// linked the epoll backend does.
class [[nodiscard]] readiness_operation final : public suspension,
                                                public list_hook<>,
                                                public awaited_from_outside<readiness_operation> {
public:
    using is_leaf = void; // see with_timeout()

    readiness_operation(int descriptor, direction way) noexcept
        : fd{descriptor}
        , waits_to{way} {}
    // Only idle ones move.
    readiness_operation(readiness_operation&& other) noexcept
        : suspension{}
        , list_hook{}
        , fd{other.fd}
        , waits_to{other.waits_to} {}
    ~readiness_operation() {
        SIMPLENET_DEBUG_EXPECTS(kernel_references == 0,
                                "a coroutine was destroyed while the kernel was using it");
    }

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<readiness_operation>::await_suspend;
    template <own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        start(caller, scope_of(caller, at));
    }
    result<> await_resume() const noexcept;

    void run() noexcept override;
    void on_stop(stop_reason reason) noexcept override;
    void describe(std::string& text) override;

    // idle      constructed
    // waiting   the backend completes it
    // looking   on the ready list after its deadline: polls once more when its turn comes
    // finished  on the ready list with its outcome, or over
    enum class state : std::uint8_t { idle, waiting, looking, finished };

    // Read by the backends.
    int fd; // borrowed
    direction waits_to;
    state phase = state::idle;
    stop_reason stopped = stop_reason::none;
    std::uint8_t kernel_references = 0; // entries that refer to this: its own, and a cancel
    int outcome = 0;                    // io_uring: the events, or a negated errno
    int error = 0;                      // an errno

private:
    void start(std::coroutine_handle<> caller, scope& within) noexcept;
};

} // namespace detail

inline namespace runtime {

/// Waits until a read from `descriptor` would not block: there is data, the end, or an error.
///
/// For descriptors that this library has no type for. Level-triggered: while data is unread, each
/// wait ends at once. The descriptor is only watched. Put it into nonblocking mode, because other
/// code may read the data first. Any number of coroutines may wait for the same descriptor, in both
/// directions.
///
/// @pre `descriptor` stays open until the await returns: stop the wait before you close it. If it
///      is closed anyway, the wait may continue until it is stopped; it does not disturb a new wait
///      for a descriptor that got the same number.
/// @return An awaitable of `result<>`.
/// @param descriptor  Borrowed. It may be watched elsewhere, for example by another epoll. A
///                    regular file or directory is always ready, as in poll(2).
///
/// @par Errors
/// - `std::errc::bad_file_descriptor`: not open, or closed during the wait (not always noticed).
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - `std::errc::not_enough_memory`, `std::errc::no_space_on_device`: the kernel has no room for
///   one more watch (epoll_ctl(2)). A shortage of descriptors is no obstacle.
/// @par Cancellation
/// Nothing is taken from the descriptor, so nothing is lost. Readiness beats a deadline.
/// @par Cost
/// Always suspends until the loop's next poll. epoll: one epoll_ctl(2) per wait; a descriptor stays
/// registered, disarmed, until its owner closes it. io_uring: one entry per wait, submitted with
/// the poll of the turn; the kernel holds the file until the wait is over. Allocates only for the
/// first wait for a descriptor with so high a number.
/// @par Example
/// @snippet watch_files.cpp wait
[[nodiscard]] inline detail::readiness_operation async_wait_readable(int descriptor) noexcept {
    return {descriptor, detail::direction::read};
}

/// Waits until a write to `descriptor` would not block: there is room, or an error to report.
/// Otherwise like async_wait_readable().
[[nodiscard]] inline detail::readiness_operation async_wait_writable(int descriptor) noexcept {
    return {descriptor, detail::direction::write};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
