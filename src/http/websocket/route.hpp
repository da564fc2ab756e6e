#pragma once
// make_websocket_route: the handler behind router::websocket(). Layer http, private.

#include <simplenet/http/detail/route_handler.hpp>
#include <simplenet/http/detail/websocket_handler.hpp>
#include <simplenet/http/websocket.hpp>

#include <memory>

namespace simplenet::v0::http::detail {

[[nodiscard]] std::shared_ptr<route_handler>
make_websocket_route(std::shared_ptr<websocket_handler> handler, const websocket_options& options);

} // namespace simplenet::v0::http::detail
