#pragma once
// sha1: the hash in the handshake of WebSocket (RFC 6455, 4.2.2), and nothing else. Layer
// http/codec.

#include <simplenet/core/buffer.hpp>

#include <array>
#include <cstddef>

namespace simplenet::v0::http::detail {

/// The SHA-1 of `bytes` (FIPS 180-4, 6.1).
///
/// Proves that a server has understood a handshake; it protects nothing, so it does not matter that
/// SHA-1 is broken, or that its time depends on the input's length. OpenSSL has it too, but TLS is
/// optional, and zlib is the only library that every build with HTTP has.
[[nodiscard]] std::array<std::byte, 20> sha1(const_buffer bytes) noexcept;

} // namespace simplenet::v0::http::detail
