#pragma once
// What the fields of a message say about its body and its connection (RFC 9112 sections 6, 7 and
// 9), strict: a message that two recipients could frame differently is refused. Layer http/codec,
// private: for servers, clients and gateways.

#include <simplenet/core/abi.hpp>
#include <simplenet/http/codec/field_entry.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

struct framing {
    // none         no body
    // length       `length` bytes, which may be 0
    // chunked      in chunks
    // until_close  everything up to the end of the connection; responses only
    enum class kind : std::uint8_t { none, length, chunked, until_close } kind = kind::none;
    /// The connection may carry another message behind this one.
    bool keep_alive = false;
    /// The client waits for `100 Continue` before it sends the body. Requests of HTTP/1.1 only.
    bool expects_continue = false;
    /// `Connection: upgrade` and a field Upgrade. HTTP/1.1 only.
    bool upgrade = false;
    /// Bytes of the body, at most 2^63 - 1.
    std::uint64_t length = 0;
    /// host[:port] from the field Host, as it was sent. Empty: HTTP/1.0 without Host, or a
    /// response.
    std::string_view host = {};
};

/// Frames a request with the fields of a complete head. `version` is 10 or 11.
///
/// @param text  The first byte of the head; `framing::host` refers to it.
/// @param into  Where the framing is written; nothing about it is known after a refusal.
/// @return 0, or the status that refuses the request. After any of them the connection has to be
///         closed, since where the next message begins is unknown.
///
/// In the order in which they win:
/// - 400: Content-Length beside Transfer-Encoding, more than one of either, a length that is not
///   digits or above 2^63 - 1, Transfer-Encoding in HTTP/1.0 or not ending in exactly one
///   `chunked`;
/// - 501: another coding before the final `chunked`;
/// - 400: no Host in HTTP/1.1, two, or one that valid_authority() refuses;
/// - 417: an expectation other than `100-continue`.
// Not an expected<framing, unsigned>: every request would copy bytes that were just written one by
// one, which the processor has to wait for.
[[nodiscard]] unsigned frame_request(unsigned version, std::span<const field_entry> fields,
                                     const char* text, framing& into) noexcept;

/// Frames a response with the fields of a complete head.
///
/// Answers to HEAD, 1xx, 204 and 304 have no body, whatever their fields say (RFC 9112
/// section 6.3), nor have successful answers to CONNECT, behind which the connection is a tunnel.
///
/// @param code    The status of the response.
/// @param method  Of the request that it answers.
/// @return 0, or why the response is refused: 400 or 501 as for requests.
[[nodiscard]] unsigned frame_response(unsigned version, unsigned code, std::string_view method,
                                      std::span<const field_entry> fields, const char* text,
                                      framing& into) noexcept;

/// Whether a field of that name means nothing, or something else, behind a body: fields of framing,
/// routing, authentication, of the form of the content, and those that modify the request or belong
/// to the connection (RFC 9110 section 6.5.1).
[[nodiscard]] bool forbidden_in_trailers(std::string_view name) noexcept;

} // namespace simplenet::v0::http::detail
