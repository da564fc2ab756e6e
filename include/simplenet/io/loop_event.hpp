#pragma once
// loop_event: what a loop tells about itself, for a log. Layer io. See loop_options::on_event.

#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

struct stall_report;

enum class loop_event_kind : std::uint8_t {
    accept_paused,      // few or no descriptors, or no memory: connections wait in the backlog
    stalled,            // a turn has taken longer than loop_options::stall_threshold
    handed_over,        // a connection goes on to another loop
    connection_refused, // a server did not take a connection
};

/// "accept_paused" and so on.
[[nodiscard]] const char* to_string(loop_event_kind which) noexcept;

/// Something that an operator may want to know. Valid during the call of the hook.
struct loop_event {
    loop_event_kind kind;
    /// One line without its end, followed by a NUL.
    std::string_view text;
    /// The reason, if there is one: of accept_paused, what the kernel lacks.
    std::error_code error = {};
    /// Of accept_paused: until the next attempt, about. Of stalled: how long the turn has taken so
    /// far.
    std::chrono::nanoseconds duration{};
    /// Of accept_paused: the listener, or -1 for all of a loop. Of handed_over and
    /// connection_refused: the connection. -1: none.
    int descriptor = -1;
    /// Of stalled: everything that is known.
    const stall_report* stall = nullptr;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
