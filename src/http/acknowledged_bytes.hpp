#pragma once
// acknowledged_bytes: what the peer of a socket has taken. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstdint>

namespace simplenet::v0::http::detail {

/// Bytes that the peer has acknowledged since the connection was made (TCP_INFO, tcp(7)). Only two
/// calls for the same socket can be compared.
///
/// Where the kernel does not tell, and on other sockets than those of TCP: `sent` less what waits
/// in the send buffer, which shows it nearly as well.
[[nodiscard]] std::int64_t acknowledged_bytes(int socket, std::int64_t sent = 0) noexcept;

} // namespace simplenet::v0::http::detail
