#pragma once
// URLs as a client uses them: where to connect, and what to ask for. Layer http/codec, private.

#include <simplenet/core/abi.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Invariant: parse_url(text_of(url)) is `url` again, for each that a function below returned.
struct url {
    bool secure = false;
    std::uint16_t port = 80;
    std::string host;   // in lower case; an IPv6 address without brackets, in its canonical text
    std::string target; // path and query; begins with "/"

    friend bool operator==(const url&, const url&) = default;
};

/// Reads an absolute URL of the scheme http or https.
///
/// The fragment is dropped. Dot segments of the path are resolved (RFC 3986, section 5.2.4), and an
/// empty path is "/"; percent encodings are left alone. Only the characters of RFC 3986 are
/// accepted: what we send must not depend on how a server repairs it.
///
/// @return Nothing for another scheme, user information, an empty host, percent encodings or
///         letters beyond ASCII in the host, port 0, and for blanks, controls and malformed percent
///         encodings anywhere.
[[nodiscard]] std::optional<url> parse_url(std::string_view text);

/// The same for the schemes ws and wss, whose URLs have no fragment (RFC 6455, section 3).
[[nodiscard]] std::optional<url> parse_websocket_url(std::string_view text);

/// The URL that `reference` means in a document at `base` (RFC 3986, section 5.2): a Location.
///
/// @return Nothing if parse_url() refuses the result.
[[nodiscard]] std::optional<url> resolve(const url& base, std::string_view reference);

/// host[:port], without the default port: for Host, and the key of a certificate's name.
[[nodiscard]] std::string authority_of(const url& of);

/// Scheme and authority: equal if and only if two URLs have the same origin (RFC 6454, section 5).
[[nodiscard]] std::string origin_of(const url& of);

/// The whole URL.
[[nodiscard]] std::string text_of(const url& of);

} // namespace simplenet::v0::http::detail
