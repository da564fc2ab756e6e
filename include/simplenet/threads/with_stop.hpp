#pragma once
// with_stop: a std::stop_token, from any thread, around anything that can be awaited. Layer
// threads.

#include <simplenet/coro/scoped.hpp>
#include <simplenet/threads/detail/posted.hpp>
#include <simplenet/time/deadline.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// The part of a with_stop() that a request from another thread needs on the loop. Shared by the
/// awaiter and at most one request on its way: it is its own message, so a request cannot fail for
/// lack of memory.
struct stop_target final : posted {
    stop_target(scope* stopped, run_queue* home) noexcept
        : inner{stopped}
        , queue{home} {}
    void run() noexcept override;
    void drop() noexcept override;

    scope* inner;                      // loop thread only; null once the await is over
    run_queue* const queue;            // for comparison only, from other threads
    bool came_first = false;           // loop thread only: the scope was stopped before the end
    std::shared_ptr<stop_target> self; // set while that is on its way
};

/// Stops `target`: at once on its own thread, through the loop's inbox from another thread.
void request_stop_of(const std::shared_ptr<stop_target>& target) noexcept;

class token_policy {
public:
    explicit token_policy(std::stop_token token) noexcept
        : token_{std::move(token)} {}
    token_policy(token_policy&& other) noexcept
        : token_{std::move(other.token_)} {}

    static stop_reason inherits(stop_reason reason) noexcept { return reason; }
    void entered(scope& inner) {
        target_ = std::make_shared<stop_target>(&inner, inner.queue);
        // Calls back immediately if the stop was already requested.
        callback_.emplace(token_, callback{target_});
    }
    static void suspended(scope&) noexcept {}
    void leaving() noexcept {
        callback_.reset(); // waits for a callback that is running on another thread
        if (target_) target_->inner = nullptr;
    }
    auto finish(auto&& resume) {
        return finish_stopped(resume, target_->came_first,
                              std::make_error_code(std::errc::operation_canceled));
    }

private:
    struct callback {
        std::shared_ptr<stop_target> target;
        void operator()() const noexcept { request_stop_of(target); }
    };

    std::stop_token token_;
    std::shared_ptr<stop_target> target_;
    std::optional<std::stop_callback<callback>> callback_;
};

} // namespace detail

inline namespace runtime {

/// Awaits `awaitable`, and stops it when a stop is requested through `token`.
///
/// The request may come from any thread; nothing is resumed inside it. Stopped work is joined.
///
/// @return For an awaitable of `expected<U, E>` with an `E` made from std::error_code: its own
///         result; stopped operations fail with operation_canceled. For any other `T`: `result<T>`,
///         which is operation_canceled if the stop came before the end.
/// @pre The source's last request from another thread returns before the loop is destroyed.
/// @par Cost
/// One allocation for the state shared by both threads; if the loop sleeps, one system call for a
/// request from another thread.
template <detail::awaitable Awaitable>
[[nodiscard]] auto with_stop(std::stop_token token, Awaitable awaitable) {
    return detail::scoped_awaiter<Awaitable, detail::token_policy>{std::move(awaitable),
                                                                   std::move(token)};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
