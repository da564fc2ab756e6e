#pragma once
// All of layer tls, an optional component: TLS over any stream.

#include <simplenet/tls/config.hpp>
#include <simplenet/tls/connect.hpp>
#include <simplenet/tls/connection_info.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/errc.hpp>
#include <simplenet/tls/peer_certificate.hpp>
#include <simplenet/tls/server.hpp>
#include <simplenet/tls/session_cache.hpp>
#include <simplenet/tls/stream.hpp>
