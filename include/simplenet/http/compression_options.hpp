#pragma once
// http::compression_options: which answers are compressed while they are sent. Layer http.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Which answers are compressed with gzip while they are sent, for clients that accept it. None by
/// default.
///
/// A compressed answer loses what holds for the plain bytes only: Content-Length, Accept-Ranges,
/// Content-MD5, Digest, Content-Digest and Repr-Digest; a strong ETag becomes weak. An answer to
/// HEAD has the same fields as one to GET, as far as the handler tells its type and length: if the
/// length is unknown, it counts as large enough.
///
/// Do not compress a page that contains both a secret and what a stranger can put into it: the size
/// of the answers tells the secret (CVE-2013-3587, BREACH).
struct compression_options {
    /// Media types without parameters, such as `text/html`; `text/*` for all of a kind. Empty:
    /// nothing is compressed. Copied by server::listen() and adopt().
    std::span<const std::string_view> types = {};
    /// Bytes; smaller answers are not compressed. Answers of unknown size are.
    std::size_t minimum = 1024;
    /// From 1, the fastest, to 9, the smallest.
    int level = 6;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
