#pragma once
// What texts in a configuration must look like: hosts, paths, fields. Each function returns what is
// wrong in words that follow the text, or nothing: "is no name of a host: ...".

#include "httpd/config/configuration.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace httpd {

using complaint = std::optional<std::string>;

/// A name, an IPv4 address or an IPv6 address in brackets, without a port; `*.` may stand in front
/// of a name. RFC 1123, section 2.1, and RFC 1035, section 2.3.4; underscores are tolerated.
[[nodiscard]] complaint wrong_host(std::string_view text);

/// In lower case, without a trailing dot.
[[nodiscard]] std::string normal_host(std::string_view text);

/// A path as request::path() is: with a leading slash, without empty and dot segments, decoded.
[[nodiscard]] complaint wrong_path(std::string_view text);

/// `/path`, `/path/*` or `*.suffix`.
[[nodiscard]] std::expected<path_match, std::string> parse_match(std::string_view text);

/// As a configuration writes it.
[[nodiscard]] std::string to_text(const path_match& match);

/// The target of a redirection: a path or an absolute URL of http or https, encoded.
[[nodiscard]] complaint wrong_redirect(std::string_view text);

/// RFC 9110, section 5.1; also those that frame a message, which the server sets itself.
[[nodiscard]] complaint wrong_header_name(std::string_view text);
/// A text that is sent as a quoted string: RFC 9110, section 5.6.4.
[[nodiscard]] complaint wrong_quoted_text(std::string_view text);
/// RFC 9110, section 5.5.
[[nodiscard]] complaint wrong_header_value(std::string_view text);

/// `type/subtype` or `type/*`.
[[nodiscard]] complaint wrong_media_type(std::string_view text);

/// One name, without a slash.
[[nodiscard]] complaint wrong_file_name(std::string_view text);

/// `ADDRESS:PORT`.
[[nodiscard]] std::expected<simplenet::endpoint, std::string> parse_endpoint(std::string_view text);

} // namespace httpd
