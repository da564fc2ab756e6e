#pragma once
// hand_over: gives a connection to another loop. Layer stream.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/runtime/event_loop.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// A stream on its way between two loops. Its destructor closes it, and resets the connection if
/// bytes are unread.
class travelling_stream {
public:
    travelling_stream() noexcept = default;
    travelling_stream(travelling_stream&&) noexcept = default;
    travelling_stream& operator=(travelling_stream&&) = delete;
    ~travelling_stream();

    /// Takes everything out of `stream`. False: the kernel still refers to it; await leave(). An
    /// error: it is closed.
    [[nodiscard]] result<bool> leave_at_once(tcp_stream& stream);
    /// The rest of leave_at_once(), once the kernel has finished.
    [[nodiscard]] task<result<>> leave(tcp_stream stream);
    /// The stream for the loop of this thread.
    [[nodiscard]] tcp_stream arrive();

private:
    void take(socket_record& from);

    unique_fd socket_;
    std::vector<std::byte> unread_;
    int read_error_ = 0; // behind them; 0, or an errno
    bool write_told_ = false;
    bool end_told_ = false;
    bool aborts_ = false; // close() resets
    std::chrono::nanoseconds idle_limit_{};
};

/// What is posted to the other loop.
template <class Function, class... Args>
struct arrival {
    void operator()() noexcept {
        run_queue& queue = run_queue::require_current();
        try {
            tcp_stream stream = travelling.arrive();
            std::apply(
                [&](Args&... each) {
                    static_cast<void>(spawn_on(queue, std::move(function), std::move(stream),
                                               std::move(each)...));
                },
                arguments);
        } catch (...) {
            queue.report_unhandled(std::current_exception());
        }
    }

    travelling_stream travelling;
    Function function;
    std::tuple<Args...> arguments;
};

template <class Arrival>
task<> leave_and_post(event_loop& to, tcp_stream stream, Arrival arriving) {
    try {
        const result<> left = co_await arriving.travelling.leave(std::move(stream));
        if (left) to.post(std::move(arriving)); // else the end of the loop has closed it
    } catch (const std::bad_alloc&) {
        // The caller has gone on, so nobody can be told: the connection is closed.
    }
}

} // namespace detail

inline namespace runtime {

/// Gives `stream` to the loop `to`, and starts `function(stream, arguments...)` there, which
/// returns a task. Nobody waits for it: its exception goes to `on_unhandled` of that loop.
///
/// Bytes that were received and not read go along, as do an error that no read has reported yet,
/// the idle timeout, and what set_linger() has set. Callable and arguments are copied or moved, as
/// for std::thread, and destroyed on the other loop. If that one is destroyed before, the
/// connection is closed; with bytes unread it is reset.
///
/// @pre No operation of `stream` is in flight. The loop of the stream runs on this thread, if it
/// was used; then `to` lives until the stream has left, two turns of this loop later at most.
/// Otherwise until the call returns.
/// @return Success: the stream is on its way. Available at once; `co_await` is allowed but not
///         needed.
///
/// @par Errors
/// - `std::errc::bad_file_descriptor`: the stream is closed.
///
/// Throws std::bad_alloc; then the stream is closed. On io_uring memory may be short only after the
/// call has returned: then the connection is closed, and nothing is started.
/// @par Cost
/// A post(). On io_uring a stream that was read leaves after a turn, in which the kernel ends its
/// receive; that costs a task.
/// @par Thread safety
/// Any thread, if the stream was never used on a loop.
template <class Function, class... Args>
detail::ready_result hand_over(event_loop& to, tcp_stream stream, Function&& function,
                               Args&&... arguments) {
    if constexpr (detail::checked_task_function<Function, tcp_stream, Args...>()) {
        detail::arrival<std::decay_t<Function>, std::decay_t<Args>...> arriving{
            {}, std::forward<Function>(function), {std::forward<Args>(arguments)...}};
        const result<bool> left = arriving.travelling.leave_at_once(stream);
        if (!left) return result<>{fail(left)};
        if (*left) {
            to.post(std::move(arriving));
        } else {
            static_cast<void>(
                spawn(detail::leave_and_post(to, std::move(stream), std::move(arriving))));
        }
        return {};
    }
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
