#pragma once
// last_bytes: what a client has not taken when its connection ends. Layer http, private.

#include <simplenet/coro/task.hpp>
#include <simplenet/http/limits.hpp>

#include <cstdint>

namespace simplenet::v0::http::detail {

enum class last_bytes : std::uint8_t {
    taken,
    left,     // the room is needed
    too_slow, // limits::send_idle, limits::minimum_rate
    unknown,  // a stop came first, or the connection is over
};

/// Whether our kernel has something for the client that is not even on its way. A close does not
/// wait for that, and whatever the client sends behind a close resets the connection, which drops
/// it (RFC 9112, section 9.6). Cost: a system call.
[[nodiscard]] bool has_last_bytes(int socket) noexcept;

/// Waits until the client's kernel has acknowledged everything, for as long as the client is not
/// too slow and nobody else needs the room.
///
/// Cost: three system calls and a timer for each look: after 1, 2, 4 ms, then four times a second.
[[nodiscard]] task<last_bytes> wait_for_last_bytes(int socket, limits with);

/// Before a close that waits for nothing: what a client that reads nothing has not taken is kept
/// for send_idle. The kernel would keep it for minutes, and it may be megabytes (TCP_USER_TIMEOUT,
/// tcp(7)).
void leave_last_bytes(int socket, const limits& with) noexcept;

} // namespace simplenet::v0::http::detail
