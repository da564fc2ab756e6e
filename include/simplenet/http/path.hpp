#pragma once
// http::encode_path: a path as a URL has it. Layer http.

#include <simplenet/core/abi.hpp>

#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// What request::path() or a part of it looks like in a URL: bytes that cannot stand there are
/// percent-encoded (RFC 3986, section 3.3). Its own `%2F` and `%25` stay. Throws std::bad_alloc.
/// Any thread.
[[nodiscard]] std::string encode_path(std::string_view path);

} // namespace simplenet::v0::http

#pragma GCC visibility pop
