#pragma once
// What a gateway does with a field, by its name alone. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstdint>
#include <string_view>

namespace simplenet::v0::http::detail {

enum class field_kind : std::uint8_t {
    ordinary,       // passed on, unless Connection names it
    kept,           // passed on, whatever Connection says: credentials
    hop_by_hop,     // for the next recipient only (RFC 9110, section 7.6.1)
    connection,     // the same, and names others
    content,        // Content-Length: each message is framed anew
    host,           //
    expect,         // answered here
    proxy,          // "Proxy", which CGI would make the variable HTTP_PROXY (CVE-2016-5385)
    via,            //
    max_forwards,   //
    forwarded,      // Forwarded
    forwarded_for,  // X-Forwarded-For
    real_ip,        // X-Real-IP
    proto,          // X-Forwarded-Proto
    forwarded_host, // X-Forwarded-Host
    forwarded_more, // any other X-Forwarded-
};

/// The kind of a field.
[[nodiscard]] field_kind kind_of_field(std::string_view name) noexcept;

/// The same if "_" in a name is read as "-", as CGI, WSGI and Rack do: they know no difference.
[[nodiscard]] field_kind kind_of_folded_field(std::string_view name) noexcept;

/// Whether a field of this kind tells who the client is, and so is believed only if a trusted peer
/// sends it.
[[nodiscard]] constexpr bool tells_client(field_kind kind) noexcept {
    return kind >= field_kind::forwarded;
}

/// Whether every reader of a Forwarded finds the same elements in it, also in one that is
/// continued.
// A client may leave a quote open, and its proxy append to that: what the proxy says then stands in
// a string of the client. Parsers disagree about quotes and backslashes anywhere but around a whole
// value (RFC 7239, section 4). An address without its quotes is not well-formed either, but
// harms nobody, and real proxies send it.
[[nodiscard]] bool has_clear_elements(std::string_view forwarded) noexcept;

/// Whether two names are the same for a backend that reads "_" as "-".
[[nodiscard]] bool equals_folded(std::string_view left, std::string_view right) noexcept;

} // namespace simplenet::v0::http::detail
