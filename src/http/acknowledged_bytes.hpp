#pragma once
// acknowledged_bytes: what the peer of a socket has taken. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstdint>

namespace simplenet::v0::http::detail {

/// Bytes that the peer has acknowledged since the connection was made (TCP_INFO, tcp(7)).
///
/// Where the kernel does not tell, and on sockets other than TCP: `sent` less what waits in the
/// send buffer, which shows it nearly as well. Compare only results for the same socket, with
/// `sent` counted from the same moment.
[[nodiscard]] std::int64_t acknowledged_bytes(int socket, std::int64_t sent = 0) noexcept;

} // namespace simplenet::v0::http::detail
