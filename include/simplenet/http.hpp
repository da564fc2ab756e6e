#pragma once
// All of layer http, an optional component: HTTP/1.1 servers and clients, and WebSocket.

#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/http/backend.hpp>
#include <simplenet/http/basic_credentials.hpp>
#include <simplenet/http/client.hpp>
#include <simplenet/http/client_options.hpp>
#include <simplenet/http/client_request.hpp>
#include <simplenet/http/client_response.hpp>
#include <simplenet/http/compression_options.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/http/fastcgi.hpp>
#include <simplenet/http/fields.hpp>
#include <simplenet/http/file_handler.hpp>
#include <simplenet/http/file_options.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/path.hpp>
#include <simplenet/http/proxy_handler.hpp>
#include <simplenet/http/proxy_options.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/http/router.hpp>
#include <simplenet/http/server.hpp>
#include <simplenet/http/static_options.hpp>
#include <simplenet/http/status.hpp>
#include <simplenet/http/websocket.hpp>
