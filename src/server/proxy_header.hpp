#pragma once
// The header of the PROXY protocol, versions 1 and 2: parsed from bytes, and read from a stream.
// Layer server, private: for servers behind a proxy. The source of all rules is HAProxy's
// doc/proxy-protocol.txt.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/net/tcp_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace simplenet::v0::detail {

/// The ends of the connection between the client and the proxy.
struct proxied_addresses {
    endpoint source;
    endpoint destination;

    friend bool operator==(const proxied_addresses&, const proxied_addresses&) noexcept = default;
};

/// Longest header: 16 bytes and a length of 16 bits.
inline constexpr std::size_t max_proxy_header = 16 + 65535;

/// The first bytes of a connection, judged.
struct proxy_header {
    // incomplete  every byte fits, and `size` or more bytes of the header are missing
    // complete    the header has `size` bytes
    // malformed   no header begins like this
    enum class verdict : std::uint8_t { incomplete, complete, malformed };

    verdict is = verdict::malformed;
    /// Bytes. If incomplete at least 1: so many may be read without reading past the header.
    std::size_t size = 0;
    /// Of a complete header. None: the connection is the proxy's own (LOCAL), or the proxy does not
    /// know its client (UNKNOWN), or reached it by something else than TCP.
    std::optional<proxied_addresses> addresses;
};

/// Parses a header at the beginning of `bytes`; what follows it is not looked at.
///
/// Version 1: the line of at most 107 bytes in the exact spelling. IPv6 addresses may end in dotted
/// decimal, because inet_ntop(3) writes them so. Version 2: the length must cover the addresses; a
/// checksum (PP2_TYPE_CRC32C) must be right, other TLVs are skipped, and so is what does not look
/// like a TLV.
///
/// Bytes are malformed as soon as no header can begin with them, at the latest at the end of the
/// wrong field: a peer that speaks another protocol is not kept waiting.
[[nodiscard]] proxy_header parse_proxy_header(std::span<const std::byte> bytes) noexcept;

/// Reads a header from `stream` and no byte beyond it.
///
/// @pre `stream` outlives the await; no other read is in flight.
/// @return The addresses in it, if any: see proxy_header::addresses.
///
/// @par Errors
/// - `std::errc::protocol_error`: the peer does not speak the protocol.
/// - `errc::end_of_stream`: the stream ended within the header, or before it.
/// - Any other error of read_some().
/// @par Cancellation
/// What was read is lost: close the stream.
/// @par Cost
/// Version 2: three reads, if the header arrives at once. Version 1 does not tell its length: each
/// read is as large as the shortest way to end the line, so about five reads, for UNKNOWN with
/// addresses up to 50. No allocation for a header of 256 bytes or less.
[[nodiscard]] task<result<std::optional<proxied_addresses>>> read_proxy_header(tcp_stream& stream);

} // namespace simplenet::v0::detail
