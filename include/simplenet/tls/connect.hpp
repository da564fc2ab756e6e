#pragma once
// tls::async_connect: a name, a connection, a handshake. Layer tls.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/stream.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// Connects to `host`, a name or an address, as simplenet::async_connect() does, and completes the
/// handshake. The name is verified, and sent as SNI unless it is an address.
///
/// @param host  Copied.
/// @param options  `timeout` limits everything, the handshake included. Set `no_delay` for small
///                 requests: if the server gives no tickets, the first one waits until the end of
///                 the handshake is acknowledged, about 40 ms (tcp(7), TCP_NODELAY).
/// @param detail  If not null: cleared first. If the handshake fails, gets the text of
///                stream::error_detail(). Borrowed until the await returns.
/// @return A stream that has been verified.
///
/// @par Errors
/// Those of simplenet::async_connect() and of stream::handshake(), and `errc::bad_configuration` if
/// `with` is a server's context.
/// @par Cancellation
/// The connection is closed.
/// @par Example
/// @snippet tls.cpp connect
[[nodiscard]] task<result<stream<tcp_stream>>>
async_connect(std::string_view host, std::uint16_t port, const context& with,
              connect_options options = {}, std::string* detail = nullptr);

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
