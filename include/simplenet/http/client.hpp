#pragma once
// http::client: requests to HTTP servers, over connections that are used again. Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/client_options.hpp>
#include <simplenet/http/client_request.hpp>
#include <simplenet/http/client_response.hpp>
#include <simplenet/http/websocket.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class client_core;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Sends requests of HTTP/1.1, and keeps its connections for further ones.
///
/// No proxies, no cookies, no authentication of its own: what a request does not have is not sent.
/// As many calls as one likes may be in progress; each connection carries one request at a time.
///
/// Belongs to the loop that uses it first. Destroying it closes the connections that are idle, and
/// ends the calls that wait for one with `operation_canceled`; other calls, and answers, go on. Not
/// movable. Loop thread only.
///
/// @par Example
/// @snippet http_fetch.cpp fetch
class client {
public:
    /// Copies what `options` refers to. Throws std::bad_alloc.
    ///
    /// @pre `per_origin`, `connections` and `header_count` are at least 1.
    explicit client(const client_options& options = {});
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client();

    /// Sends a GET request without a body; otherwise as send().
    ///
    /// @param url  Copied.
    [[nodiscard]] task<result<client_response>> get(std::string_view url);

    /// Sends a request, and returns when the head of the answer is there.
    ///
    /// Answers with 1xx are skipped, and any other status is a success: 404 and 500 too.
    ///
    /// *Redirects.* If client_options::redirects allows it, 301, 302, 303, 307 and 308 with a
    /// Location are followed. After 303 the request is GET without a body, unless it was HEAD;
    /// after 301 and 302 that holds for POST; otherwise method and body stay. A redirect that needs
    /// the body of `stream` again is returned. To another origin, Authorization, Proxy-
    /// Authorization, Cookie and Host do not go along, nor do they on the way back.
    ///
    /// *Repetition.* A server may close a connection in the moment in which it is used again. A
    /// request is then sent once more, if not a byte of an answer has come, its method is
    /// idempotent (RFC 9110, section 9.2.2), and its body is in memory.
    ///
    /// @param request  `method`, `url` and `fields` are copied, the body is borrowed for longer
    ///                 than the call: see client_request.
    ///
    /// @par Errors
    /// The connection is closed.
    /// - `errc::bad_url`: that of the request, or of a redirect.
    /// - `std::errc::invalid_argument`: a method, or a name or value of a field, that cannot be
    ///   sent, with CR, LF or NUL in particular; or a field that the client sets itself; or both
    ///   `body` and `stream`. Nothing has left.
    /// - `errc::bad_response`: the answer breaks HTTP/1.1, switches protocols unasked, or follows
    ///   too many of 1xx; or the server has chosen another protocol by ALPN.
    /// - `errc::unsupported_transfer_coding`: the answer has another one than `chunked`.
    /// - `errc::header_too_large`: the head of the answer is larger than the limits.
    /// - `errc::incomplete_message`: the connection ended before the head did.
    /// - `errc::too_many_redirects`: more than client_options::redirects, or one in a circle.
    /// - `std::errc::operation_not_permitted`: a redirect from https to http.
    /// - `errc::deadline_exceeded` of the library: a time limit of client_options.
    /// - `std::errc::message_size`: client_request::stream has ended before `content_length`.
    /// - `std::errc::operation_not_supported`: https, and the library was built without TLS.
    /// - `std::errc::operation_canceled`: a stop; or the client was destroyed.
    /// - Those of async_connect(), of tls::async_connect(), of client_request::stream, and of the
    ///   connection.
    /// @par Cancellation
    /// The connection is closed. The server may have got the request.
    /// @par Cost
    /// Several allocations for each request; a connection that is made costs those of
    /// async_connect().
    [[nodiscard]] task<result<client_response>> send(const client_request& request);

    /// Opens a WebSocket at a URL of the scheme ws or wss. Redirects are not followed.
    ///
    /// The connection leaves the pool with the success. Limits of client_options hold until then,
    /// those of `options` afterwards.
    ///
    /// @param url      Copied.
    /// @param options  `protocols` is copied by the call.
    ///
    /// @par Errors
    /// - `errc::websocket_protocol`: the server has not accepted, or not as RFC 6455 demands it.
    /// - `std::errc::invalid_argument`: a subprotocol that is no token.
    /// - Otherwise as for send().
    [[nodiscard]] task<result<http::websocket>> websocket(std::string_view url,
                                                          const websocket_options& options = {});

    /// The number of connections: in use, idle, or being made.
    [[nodiscard]] std::size_t connections() const noexcept;
    /// The number of idle ones among them.
    [[nodiscard]] std::size_t idle_connections() const noexcept;

private:
    std::shared_ptr<detail::client_core> core_; // calls in progress share it
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
