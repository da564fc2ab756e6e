#pragma once
// event_hook: loop_options::on_event, for those who tell it something. Layer io, private.

#include <simplenet/io/loop_event.hpp>
#include <simplenet/io/loop_options.hpp>

namespace simplenet::v0::detail {

/// The hook of a loop, or none. A value; any thread.
class event_hook {
public:
    event_hook() noexcept = default;
    explicit event_hook(const loop_options& options) noexcept
        : function_{options.on_event}
        , context_{options.event_context} {}

    /// Whether somebody listens; otherwise the event need not be made.
    explicit operator bool() const noexcept { return function_ != nullptr; }

    /// Completes `event` with a text, printf(3), of at most 255 bytes; does nothing without a hook.
    [[gnu::cold, gnu::format(printf, 3, 4)]] void tell(loop_event event, const char* format,
                                                       ...) const noexcept;

private:
    void (*function_)(const loop_event&, void*) = nullptr;
    void* context_ = nullptr;
};

/// The meaning of an errno, at most as long as `to`; without an allocation that can fail.
[[nodiscard]] const char* describe_errno(int error, char (&to)[96]) noexcept;

} // namespace simplenet::v0::detail
