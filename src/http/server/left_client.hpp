#pragma once
// has_left: a client that has left before its answer. Layer http, private.

#include <poll.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::http::detail {

/// Whether the client has ended its sending side, or the connection. A few clients end that side
/// and read on: for work that others wait for, they count as gone.
///
/// @param client  The socket.
[[nodiscard]] inline bool has_left(int client) noexcept {
    pollfd socket{.fd = client, .events = POLLRDHUP, .revents = 0};
    return ::poll(&socket, 1, 0) == 1;
}

} // namespace simplenet::v0::http::detail
