#pragma once
// http::client_options: what a client connects with, and how long and how much it puts up with.
// Layer http.

#include <simplenet/core/abi.hpp>
#include <simplenet/net/connect.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simplenet::v0::tls {
class context;
} // namespace simplenet::v0::tls

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// How a client connects, and what a server may cost it. Sizes are bytes. Times of 0 are no limit.
struct client_options {
    /// For https: the context of a client, which is copied. If it offers protocols by ALPN,
    /// `http/1.1` must be among them. Null: the system's trust store, read when the first https URL
    /// is asked for, which blocks on files.
    const tls::context* tls = nullptr;
    /// For each connection. `timeout` includes the lookup and the handshake of TLS. `report` is
    /// ignored.
    connect_options connect = {.no_delay = true, .timeout = std::chrono::seconds{10}};

    /// The most connections to one origin: scheme, host and port. At least 1. Further requests
    /// wait.
    std::size_t per_origin = 8;
    /// The most connections in all. At least 1.
    std::size_t connections = 256;
    /// An unused connection is kept for so long. 0: none is kept.
    std::chrono::nanoseconds idle = std::chrono::seconds{30};

    /// How many redirects a call follows. Without any, and after those that cannot be followed, the
    /// redirect itself is the answer.
    unsigned redirects = 0;

    /// For the head of an answer, once the request has left.
    std::chrono::nanoseconds headers_within = std::chrono::seconds{30};
    /// For `100 Continue`; then the body leaves without it (RFC 9110, section 10.1.1).
    std::chrono::nanoseconds continue_within = std::chrono::seconds{1};
    /// Without a byte in either direction, while a body is being sent or received.
    std::chrono::nanoseconds body_idle = std::chrono::seconds{30};
    /// For everything: from the call to the end of the answer's body, with all redirects.
    std::chrono::nanoseconds total = std::chrono::seconds{60};

    /// The status line of an answer.
    std::size_t status_line = std::size_t{8} * 1024;
    /// All fields of an answer together. The same for trailers.
    std::size_t header_bytes = std::size_t{32} * 1024;
    /// The number of fields. The same for trailers. At least 1.
    std::size_t header_count = 100;

    /// Asks for gzip, and decompresses gzip and deflate. Not for requests that have a field
    /// Accept-Encoding or Range of their own: their answers are read as they come.
    bool decompress = true;
    /// The most that the body of one answer may become. 0: no limit.
    std::uint64_t decompressed_bytes = std::uint64_t{1024} * 1024 * 1024;
    /// A body may become so many times as large as it is compressed; not counted is its first
    /// megabyte. Deflate reaches about 1030. 0: no limit.
    unsigned decompressed_ratio = 200;

    /// Sent as User-Agent, unless a request has its own. Copied. Empty: none.
    std::string_view user_agent = "libsimplenet";
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
