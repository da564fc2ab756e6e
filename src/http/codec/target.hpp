#pragma once
// The target of a request, and the path that routes, files and backends are found by. Layer
// http/codec, private.

#include "http/codec/authority.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Views into the text of the target, except for a path that had to be made up: "/".
struct target_parts {
    enum class form : std::uint8_t { origin, absolute, asterisk, authority };

    form is = form::origin;
    bool https = false;         // the scheme of an absolute-form
    bool has_query = false;     // "/a?" has an empty one
    std::string_view path;      // raw; begins with "/", or is empty: the server itself is meant
    std::string_view query;     // raw, without its "?"
    std::string_view authority; // of absolute-form and authority-form: host[:port]
};

/// Takes the target of a request apart (RFC 9112, section 3.2).
///
/// The asterisk is for OPTIONS only, and authority-form is what CONNECT has. `OPTIONS http://host`
/// means the same as `OPTIONS *` (section 3.2.4), and has an empty path too. Fragments, user
/// information and schemes other than http and https are refused.
///
/// The characters are those of RFC 3986, and a few more: browsers send "[", "]", "|" and "^" of a
/// link as they are, and in its query also "{", "}", "`", "\" and a "%" that encodes nothing (the
/// percent-encode sets of the URL Standard). Links like "?sort[]=name" and "?off=50%" must work. No
/// component of a URL begins or ends at any of them.
///
/// @return Nothing for a target that is refused: 400.
[[nodiscard]] std::optional<target_parts> parse_target(std::string_view method,
                                                       std::string_view target) noexcept;

/// Whether normalise_path() may change `raw`. False for nearly every path of a browser, which is
/// then used as it is.
[[nodiscard]] bool needs_normalising(std::string_view raw) noexcept;

/// Brings a path into the one form that decisions are made on.
///
/// - The path is split at "/" first, and each segment is decoded once.
/// - Empty segments are dropped: the file system ignores them, and a rule about "/private/" must
///   hold for "//private/". nginx does the same by default, and Go's ServeMux redirects there.
///   A result never begins with "//", which a browser would take for another host.
/// - Dot segments are resolved, encoded ones too. One that leads above the root is refused.
/// - An encoded slash stays "%2F". A decoded "%" that "25", "2F" or "2f" follows stays "%25", so
///   that "%2F" in the result is always an encoded slash ("%252F" is not). Any other "%" stands for
///   itself. decoded_parameter() undoes these two, and nothing else is to be decoded again.
///
/// The result begins with "/", and may contain any byte except NUL.
///
/// @param out  Has room for `raw.size()` bytes, and does not overlap `raw`.
/// @return The size of the result. Nothing if `raw` does not begin with "/", leads above the root,
///         or has a malformed percent encoding or a NUL: 400.
[[nodiscard]] std::optional<std::size_t> normalise_path(std::string_view raw, char* out) noexcept;

/// Whether a normalised path has an encoded slash, which no name of a file has.
[[nodiscard]] bool has_encoded_slash(std::string_view normalised) noexcept;

/// Part of a normalised path as text: "%2F" and "%25" decoded. Allocates.
[[nodiscard]] std::string decoded_parameter(std::string_view normalised);

/// A normalised path as it is sent to a backend or in a Location: normalise_path() of it is
/// `normalised` again. Allocates.
[[nodiscard]] std::string percent_encode_path(std::string_view normalised);

/// Decodes every percent encoding, once. "+" stays. Allocates.
///
/// @return Nothing if one is malformed.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

} // namespace simplenet::v0::http::detail
