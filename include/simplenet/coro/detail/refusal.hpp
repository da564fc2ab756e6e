#pragma once
// refusal: refuses operations that have nothing to wait for after a stop, like all others. Layer
// coro.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <string>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Awaited first by operations that may end without waiting: fails with the reason if the caller
/// was stopped, otherwise continues at once.
class [[nodiscard]] refusal final : public suspension, public awaited_from_outside<refusal> {
public:
    refusal() noexcept = default;
    ~refusal() = default;

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<refusal>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        if (!within.stopped()) return false;
        reason_ = within.reason;
        suspend(caller, within);
        within.queue->refuse(*this, within);
        return true;
    }
    [[nodiscard]] result<> await_resume() const noexcept {
        if (reason_ != stop_reason::none) return fail(error_of(reason_));
        return {};
    }

    void on_stop(stop_reason) noexcept override {} // already on the ready list
    void describe(std::string& text) override { text += "nothing: it was stopped"; }

private:
    stop_reason reason_ = stop_reason::none;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
