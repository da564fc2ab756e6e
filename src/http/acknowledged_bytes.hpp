#pragma once
// acknowledged_bytes: what the peer of a TCP connection has taken. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstdint>
#include <optional>

namespace simplenet::v0::http::detail {

/// In all, since the connection was made (TCP_INFO, tcp(7)). Nothing for another socket,
/// while it is 0, and where the kernel does not tell.
[[nodiscard]] std::optional<std::int64_t> acknowledged_bytes(int socket) noexcept;

} // namespace simplenet::v0::http::detail
