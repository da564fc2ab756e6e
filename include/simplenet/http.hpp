#pragma once
// All of layer http, an optional component: HTTP/1.1 servers and clients, and WebSocket.

#include <simplenet/http/errc.hpp>
#include <simplenet/http/fields.hpp>
#include <simplenet/http/file_options.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/http/router.hpp>
#include <simplenet/http/server.hpp>
#include <simplenet/http/static_options.hpp>
#include <simplenet/http/websocket.hpp>
