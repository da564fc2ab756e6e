#pragma once
// http::limits: what a client may cost a server. Layer http.

#include <simplenet/core/abi.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Limits on requests, and on the time that clients may take. Sizes are bytes. All are on by
/// default but `requests_per_connection` and `last_request`; 0 turns off `body`,
/// `requests_per_connection`, `minimum_rate` and each time but `last_request`.
struct limits {
    /// The request line; a longer one is answered with 414.
    std::size_t request_line = std::size_t{8} * 1024;
    /// All fields together; more is answered with 431. The same for trailers.
    std::size_t header_bytes = std::size_t{32} * 1024;
    /// The number of fields; more are answered with 431. The same for trailers. At least 1: without
    /// Host there is no request, so a server refuses to begin with 0.
    std::size_t header_count = 100;
    /// The body; a larger one is answered with 413. A route may have its own, see route_options.
    std::uint64_t body = std::uint64_t{1024} * 1024;
    /// The extensions of one chunk; all chunks together may have 16 KiB and the body's size.
    std::size_t chunk_extensions = 1024;
    /// The connection is closed after so many.
    unsigned requests_per_connection = 0;
    /// For a whole head: from the accept, or from the end of the TLS handshake, which has a limit
    /// of its own; later from its first byte. Then 408.
    std::chrono::nanoseconds headers_within = std::chrono::seconds{20};
    /// Without a byte of the body while a handler waits for it. Then 408.
    std::chrono::nanoseconds body_idle = std::chrono::seconds{30};
    /// Without a request on a connection.
    std::chrono::nanoseconds keep_alive = std::chrono::seconds{75};
    /// Without a byte taken by the client while an answer waits, also when the connection ends
    /// behind it. Then the connection is reset, up to an eighth of this time late, and five seconds
    /// at most. The client has taken what its kernel has acknowledged: what ours holds for it does
    /// not count, here and for minimum_rate.
    std::chrono::nanoseconds send_idle = std::chrono::seconds{60};
    /// When the server shuts down: how long a kept connection still accepts one more request, which
    /// is answered with `Connection: close`. Without this time a request that is on its way finds
    /// its connection closed (RFC 9112, section 9.5). 0: connections are closed at once.
    std::chrono::nanoseconds last_request{0};
    /// After an answer that did not wait for the whole request, once the client has taken it: how
    /// long it may go on sending before the connection is closed. 64 MiB since the answer close
    /// it, too, whatever the time.
    std::chrono::nanoseconds linger = std::chrono::seconds{30};
    /// How long it may send nothing meanwhile; when the server shuts down, also how long it may
    /// take nothing of its last answer. Also while up to 64 KiB of a body that nobody reads are
    /// dropped, so that the connection can go on.
    std::chrono::nanoseconds linger_idle = std::chrono::seconds{5};
    /// Bytes a second that a body or an answer has to move, as a mean of the time that was spent
    /// waiting for the client, when that was more than 30 seconds and than body_idle or send_idle.
    std::uint64_t minimum_rate = 240;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
