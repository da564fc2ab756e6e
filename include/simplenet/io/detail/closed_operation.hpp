#pragma once
// closed_operation: awaits the end of a close. Layer io, private.

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <string>

namespace simplenet::v0::detail {
// The library's own: not exported, since it is first named here.
struct socket_record;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Awaitable of closed(); the contract is documented there.
class [[nodiscard]] closed_operation final : public suspension,
                                             public list_hook<>,
                                             public awaited_from_outside<closed_operation> {
public:
    explicit closed_operation(socket_record* of) noexcept
        : record_{of} {}
    closed_operation(closed_operation&& other) noexcept
        : suspension{}
        , list_hook{}
        , record_{other.record_} {}
    ~closed_operation();

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<closed_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        return start(caller, scope_of(caller, at));
    }
    result<> await_resume() noexcept;

    void on_stop(stop_reason reason) noexcept override;
    void describe(std::string& text) override { text += "the end of a close"; }

private:
    bool start(std::coroutine_handle<> caller, scope& within) noexcept;

    socket_record* record_;
    stop_reason stopped_ = stop_reason::none;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
