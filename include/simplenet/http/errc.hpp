#pragma once
// http::errc: what can go wrong with HTTP that errno cannot express. Layer http.

#include <simplenet/core/abi.hpp>

#include <system_error>
#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Why a message could not be read, sent or understood.
enum class errc {
    /// The request breaks the syntax or the framing rules of HTTP/1.1, in its head or its body.
    bad_request = 1,
    /// A request line, the fields, or the trailers are larger than the limits.
    header_too_large,
    /// The body is larger than limits::body.
    body_too_large,
    /// A transfer coding other than a final `chunked`.
    unsupported_transfer_coding,
    /// The server's answer breaks the syntax or the framing rules of HTTP/1.1.
    bad_response,
    /// The connection ended before the message did.
    incomplete_message,
    /// More redirects than client_options::redirects, or one in a circle.
    too_many_redirects,
    /// Not a URL of this client: another scheme, user information, a bad character, no host.
    bad_url,
    /// A backend could not be reached, or its answer could not be understood.
    gateway_failed,
    /// The peer broke the WebSocket protocol, or refused to speak it.
    websocket_protocol,
};

/// The category of `errc`, named "simplenet.http". Any thread.
[[nodiscard]] const std::error_category& error_category() noexcept;

/// Lets a `std::error_code` be made of, and compared with, an `errc`. Any thread.
[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

} // namespace simplenet::v0::http

template <>
struct std::is_error_code_enum<simplenet::http::errc> : std::true_type {};

#pragma GCC visibility pop
