#pragma once
// Which route of a site takes a path. Used for every request, and by the checks of a configuration.

#include "httpd/config/configuration.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace httpd {

/// Whether the route takes the path, which is normalised.
[[nodiscard]] bool matches(const path_match& match, std::string_view path) noexcept;

/// Whether the route takes the path: matches() it, or has `path_info` and its scripts are followed
/// by more of a path.
[[nodiscard]] bool takes(const route& route, std::string_view path) noexcept;

/// The route with exactly this path, else the first of the file that matches it, else null.
///
/// @par Cost
/// Linear in the number of routes.
[[nodiscard]] const route* route_of(const site& site, std::string_view path) noexcept;

/// Whether an application behind `taken`, which takes the path here, may read it as the path of a
/// route that asks more of a client: `allow`, `deny`, `auth` or `rate`, its own or the site's. The
/// guards of that route would be skipped.
///
/// Servers differ in whether an encoded slash or a backslash separates segments, whether a segment
/// ends at a `;`, and which of this they do first. So all of these readings are tried. One with a
/// dot segment may be any path.
[[nodiscard]] bool may_skip_a_guard(const site& site, const route& taken, std::string_view path);

/// What the `*` of a match that takes the path stands for, without a slash at its front; empty for
/// an exact match.
[[nodiscard]] std::string_view wildcard_of(const path_match& match, std::string_view path) noexcept;

/// Whether every path that `second` takes is taken by `first`. Neither is exact, or both are.
[[nodiscard]] bool covers(const path_match& first, const path_match& second) noexcept;

} // namespace httpd
