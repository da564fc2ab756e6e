#pragma once
// The page for people, which is status.html: CMake makes its source. Used by status_server.

#include <string_view>

namespace httpd {

extern const std::string_view status_page;
/// Base64 of the SHA-256 of its script and its style, for its Content-Security-Policy.
extern const std::string_view status_script_hash;
extern const std::string_view status_style_hash;

} // namespace httpd
