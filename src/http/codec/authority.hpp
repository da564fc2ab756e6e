#pragma once
// Hosts and ports, as in Host and in the authority of a URL. Layer http/codec, private.

#include <simplenet/core/abi.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace simplenet::v0::http::detail {

/// A host and the port behind it, as they are written.
struct authority_parts {
    std::string_view host; // an IPv6 address without its brackets
    bool is_v6 = false;
    std::optional<std::uint16_t> port; // none: absent, or empty behind its colon
};

/// `host [":" port]` of RFC 3986, section 3.2, without user information.
///
/// @return Nothing for an empty host, a port above 65535, an IPv6 address with a zone, which means
///         nothing to another machine, and an IPvFuture, of which no version was ever defined.
[[nodiscard]] std::optional<authority_parts> split_authority(std::string_view text) noexcept;

/// Whether `text` may stand in a Host field, or as the authority of a target.
[[nodiscard]] bool valid_authority(std::string_view text) noexcept;

} // namespace simplenet::v0::http::detail
