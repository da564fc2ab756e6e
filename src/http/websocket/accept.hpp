#pragma once
// accept_websocket: the server's side of a WebSocket handshake. Layer http, private.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/websocket.hpp>

namespace simplenet::v0::http::detail {

class exchange;

/// As response::accept_websocket().
[[nodiscard]] task<result<websocket>> accept_websocket(exchange& of, websocket_options options);

} // namespace simplenet::v0::http::detail
