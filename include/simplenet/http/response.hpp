#pragma once
// http::response: the answer to a request. Layer http.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/compression_options.hpp>
#include <simplenet/http/file_options.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/websocket.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class exchange;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

namespace detail {

/// What response::send() returns. A type of its own, so that a handler that only returns it does
/// not compile by chance: the body is borrowed until the await returns.
class [[nodiscard]] sending final : public now_or_task<result<>> {
public:
    explicit sending(now_or_task<result<>>&& from) noexcept
        : now_or_task<result<>>{std::move(from)} {}
};

} // namespace detail

/// The answer to a request: a status, fields, and a body that is sent at once, streamed, or taken
/// from a file.
///
/// The head leaves with the first byte of the body. When the handler ends without a body, the head
/// leaves with `Content-Length: 0`. A status that was not set is 200. To a HEAD request the same
/// calls succeed, and no body leaves.
///
/// A handler that fails before the head has left answers with 500, or with the status that
/// request::read_some() gives for its error. In the middle of a streamed answer the connection is
/// reset, so that the client does not take the answer for complete; a complete answer stays. All
/// three end the connection.
///
/// Belongs to the server, which lends it to a handler. Loop thread only.
///
/// @par Example
/// @snippet http_first.cpp hello
class response {
public:
    response(const response&) = delete;
    response& operator=(const response&) = delete;

    /// Sets the status, 200 to 599. Any other makes sending fail with
    /// `std::errc::invalid_argument`.
    response& status(unsigned code) noexcept;
    /// Sets a field in place of all with this name. `Connection: close` closes the connection
    /// behind the answer. `Content-Length` announces the size of a streamed body.
    ///
    /// A bad name or value, any other Connection, and any Transfer-Encoding make sending fail with
    /// `std::errc::invalid_argument`. Throws std::bad_alloc. No effect after the head has left.
    response& set(std::string_view name, std::string_view value);
    /// Adds a field; otherwise like set().
    response& add(std::string_view name, std::string_view value);

    /// Sends the whole answer with its Content-Length.
    ///
    /// Success means that the answer was taken: up to 16 KiB are copied, and leave when the client
    /// has sent no further request that could be answered with them, at the latest in the next
    /// turn of the loop. A larger answer waits until the client has taken it.
    ///
    /// @param content_type  Empty: no Content-Type, unless it has been set.
    /// @param body  Borrowed until the await returns. Must be empty with 204, 205 and 304.
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - `std::errc::operation_not_permitted`: there is an answer already.
    /// - `std::errc::invalid_argument`: a bad status, name or value; or a Content-Length other than
    ///   the size of `body`. Nothing has left.
    /// - `errc::deadline_exceeded` of the library: the client took nothing within
    ///   limits::send_idle, or less than limits::minimum_rate; see there.
    /// - Those of the connection.
    /// @par Cancellation
    /// An answer that has left in part cannot be completed: the connection is reset when the
    /// handler ends.
    [[nodiscard]] detail::sending send(std::string_view content_type, const_buffer body);

    /// Streams at least one byte of `from`, and at most 16 KiB. Writes nothing if `from` is empty.
    ///
    /// The body is chunked, or has the Content-Length that was set. To an HTTP/1.0 client without
    /// a Content-Length it ends with the connection.
    ///
    /// @return An awaitable of `result<std::size_t>`: the number of bytes that were taken and have
    ///         left, except after a stop: then they leave with the next write.
    ///
    /// @par Errors
    /// - `std::errc::operation_not_permitted`: the answer is complete already.
    /// - `std::errc::message_size`: more than the Content-Length that was set, or a body with 204,
    ///   205 or 304.
    /// - Otherwise as for send().
    /// @par Cancellation
    /// Before anything was taken, the stop is the error; nothing is lost.
    [[nodiscard]] task<result<std::size_t>> write_some(const_buffer from);
    /// The same for several buffers, one after the other.
    [[nodiscard]] task<result<std::size_t>> write_some(std::span<const const_buffer> from);

    /// Sends `size` bytes of a file, from its beginning, with sendfile(2) where the connection has
    /// no TLS. The head leaves in one segment with the first bytes. Answers GET and HEAD requests
    /// with conditions and ranges, unless a status other than 200 was set (RFC 9110, sections 13
    /// and 14).
    ///
    /// @param fd  Borrowed until the await returns; open for reading, a regular file.
    ///
    /// @par Errors
    /// - `std::errc::io_error`: the file is shorter than `size`. The connection is reset unless
    ///   nothing has left.
    /// - Those of async_send_file() and send().
    /// @par Cancellation
    /// As for send().
    /// @par Cost
    /// After 2 MiB other tasks run (over TLS after less). The thread blocks while the disk is read.
    [[nodiscard]] task<result<>> send_file(int fd, std::uint64_t size, file_options options = {});

    /// Waits until the client's kernel can have everything that was taken.
    ///
    /// @par Errors
    /// Those of send().
    /// @par Cancellation
    /// What has not left leaves with the next write, or when the handler has ended.
    [[nodiscard]] task<result<>> flush();

    /// Whether the head has been taken: status and fields cannot be changed.
    [[nodiscard]] bool head_sent() const noexcept;
    /// The status that was set or has been sent.
    [[nodiscard]] unsigned status() const noexcept;
    /// The value of the first field that was set with this name. Valid until a field is set,
    /// added or removed, or the head has been taken; but it may be passed to set() and add(). Not
    /// of Content-Length and Connection.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
    /// Forgets everything that was set. No effect after the head has been taken.
    void reset() noexcept;
    /// Replaces server_options::compression for this answer.
    ///
    /// @param with  What it refers to is borrowed until the answer has ended. Its level is 1 to 9,
    ///              otherwise sending fails with `std::errc::invalid_argument`.
    response& compression(const compression_options& with) noexcept;

    /// Answers with 101 Switching Protocols and `Upgrade: protocol`, then gives the connection to
    /// the handler, with bytes that the client has sent already. The limits of HTTP no longer
    /// apply. The connection is closed with the stream, or when the handler ends.
    ///
    /// @pre The request is an HTTP/1.1 request that asks for the upgrade, without a body.
    ///
    /// @par Errors
    /// - `std::errc::operation_not_permitted`: the precondition does not hold, or there is an
    ///   answer already.
    /// - Those of send().
    [[nodiscard]] task<result<any_stream>> upgrade(std::string_view protocol);

    /// Completes a WebSocket handshake: answers with 101 and with the fields that were set, and
    /// gives the connection to the handler. For a handler that first looks at the request and may
    /// answer something else, such as 401; otherwise see router::websocket().
    ///
    /// The request stays valid until the handler ends. The connection is closed with the WebSocket,
    /// or when the handler ends, so call websocket::close() before.
    ///
    /// @param options  Texts are borrowed until the await returns.
    ///
    /// @par Errors
    /// - `errc::websocket_protocol`: the request is no handshake, or comes from a page of another
    ///   origin than websocket_options::origins allows. It was answered with 426, 400 or 403,
    ///   without the fields that were set. A handler may return this error: the connection then
    ///   serves the next request.
    /// - `std::errc::operation_not_permitted`: there is an answer already.
    /// - Those of send().
    /// @par Example
    /// @snippet http.cpp accept websocket
    [[nodiscard]] task<result<websocket>> accept_websocket(websocket_options options = {});

private:
    friend detail::exchange;
    explicit response(detail::exchange& of) noexcept
        : exchange_{&of} {}

    detail::exchange* exchange_; // contains this
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
