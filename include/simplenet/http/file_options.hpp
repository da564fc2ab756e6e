#pragma once
// http::file_options: how response::send_file() describes a file. Layer http.

#include <simplenet/core/abi.hpp>

#include <ctime>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// What response::send_file() says of a file. Borrowed until the await returns.
struct file_options {
    /// Of the Content-Type field; empty: none, unless the handler has set it.
    std::string_view content_type = {};
    /// A strong or weak entity tag with its quotes; empty: none.
    std::string_view entity_tag = {};
    /// Seconds since 1970; negative: none.
    std::time_t last_modified = -1;
    /// Answers ranges and conditions of the request (RFC 9110, sections 13 and 14); false: always
    /// the whole file.
    bool conditional = true;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
