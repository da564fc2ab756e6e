#pragma once
// open_websocket: the handshake of a client (RFC 6455, section 4.1). Layer http, private.

#include "http/client/client_core.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/websocket.hpp>

#include <memory>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Copies `to` and the subprotocols before it returns.
[[nodiscard]] task<result<websocket>> open_websocket(const std::shared_ptr<client_core>& core,
                                                     std::string_view to,
                                                     const websocket_options& options);

} // namespace simplenet::v0::http::detail
