#pragma once
// All of layer http, an optional component: HTTP/1.1 servers and clients, and WebSocket.

#include <simplenet/http/errc.hpp>
#include <simplenet/http/static_options.hpp>
#include <simplenet/http/websocket.hpp>
