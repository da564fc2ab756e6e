#pragma once
// run(): runs a program, or a thread of it, as a single task. Layer runtime.

#include <simplenet/runtime/detail/main_signals.hpp>
#include <simplenet/runtime/event_loop.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

template <class T>
task<> run_main(task<T> main, std::optional<result_slot<T>>& outcome, event_loop& loop) {
    struct stop_at_end { // even if the main task throws or its frame is destroyed
        event_loop& loop;
        ~stop_at_end() { loop.stop(); }
    } stop{loop};
    result_slot<T> slot;
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(main);
            slot.return_void();
        } else {
            slot.return_value(co_await std::move(main));
        }
    } catch (...) {
        slot.unhandled_exception();
    }
    outcome.emplace(std::move(slot));
}

} // namespace detail

inline namespace runtime {

/// Runs `main` on a new loop until it ends; then stops and joins the rest.
///
/// On the main thread, unless loop_options::handle_signals is false, the first SIGINT or SIGTERM
/// stops `main`: its operations fail with operation_canceled, and run() returns the result of
/// `main`. The second signal kills the process. So a program whose `main` waits ends cleanly. This
/// applies to signals that have their default action and are not blocked when run() is called.
/// Signals that the program handles, ignores (nohup(1)) or blocks (signal_set) are left alone. When
/// run() returns, the previous actions are restored; a signal that came after the end of `main`
/// takes effect then.
///
/// @return The result of `main`. Rethrows its exception. Throws `std::system_error` if no loop can
///         be created (see event_loop::create()), or with operation_canceled if event_loop::stop()
///         stopped the loop and `main` continued after 1000 refused operations.
/// @pre No loop runs on this thread.
/// @par Example
/// @snippet echo_client.cpp run
template <class T>
T run(task<T> main, loop_options options = {}) {
    SIMPLENET_EXPECTS(event_loop::current() == nullptr,
                      "run() inside a running loop: await the task instead");
    std::optional<detail::result_slot<T>> outcome;
    detail::main_signals signals{options.handle_signals};
    {
        auto made = event_loop::create(options);
        if (!made) {
            detail::throw_system_error(
                made.error(), "no event loop (see loop_options::backend and SIMPLENET_BACKEND)");
        }
        event_loop loop = *std::move(made);
        signals.begin(loop, loop.spawn(detail::run_main(std::move(main), outcome, loop)));
        loop.run();
        signals.end();
    } // joins the rest, and main too if main did not stop the loop
    if (!outcome) {
        detail::throw_system_error(std::make_error_code(std::errc::operation_canceled));
    }
    return outcome->take();
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
