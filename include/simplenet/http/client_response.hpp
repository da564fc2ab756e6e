#pragma once
// http::client_response: the answer that a client gets. Layer http.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class client_exchange;
struct client_access;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// The answer to a request of a client: its head, and a body that is read as it arrives.
///
/// Owns the connection until the body has ended: then the connection goes back to the pool, if
/// another request can follow on it. Destroying it earlier closes the connection. May outlive the
/// client. What is left of the request's body leaves while the answer is being read, and only then.
///
/// Movable, even with a read in flight; one that was moved from can only be destroyed or assigned
/// to. Views live until the last owner is destroyed. Loop thread only.
class client_response {
public:
    client_response(client_response&& other) noexcept;
    /// Closes the connection of the answer that is replaced, unless its body has ended.
    client_response& operator=(client_response&& other) noexcept;
    ~client_response();

    /// 200 to 599; others up to 999 are passed on too.
    [[nodiscard]] unsigned status() const noexcept;
    /// What follows the status in its line; may be empty.
    [[nodiscard]] std::string_view reason() const noexcept;
    /// 10 or 11.
    [[nodiscard]] unsigned version() const noexcept;
    /// As they arrived, Content-Encoding too when the body is decompressed.
    [[nodiscard]] const http::fields& fields() const noexcept;
    /// What followed a chunked body. Empty before the body has ended.
    [[nodiscard]] const http::fields& trailers() const noexcept;
    /// The URL that has given this answer: after all redirects, without a fragment.
    [[nodiscard]] std::string_view url() const noexcept;
    /// The size of the body that read_some() gives, if the server has told it: 0 if there is no
    /// body. None if it is chunked, decompressed, or ends with the connection.
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
    /// Whether read_some() decompresses.
    [[nodiscard]] bool is_decompressed() const noexcept;

    /// Reads at least one byte of the body, and at most `into.size()`.
    ///
    /// @pre `into` is not empty, no other read of this answer is in flight, and this is not
    ///      destroyed before the await returns.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Errors
    /// Except for the first one and for a stop, each is final, and has closed the connection.
    /// - `errc::end_of_stream` of the library: the body is complete.
    /// - `errc::incomplete_message`: the connection or the compressed data ended before the body
    ///   did. A body that ends with the connection ends over TLS with a close_notify.
    /// - `errc::bad_response`: the chunks or the compressed data are malformed.
    /// - `errc::header_too_large`: the trailers are larger than the limits.
    /// - `errc::limit_exceeded` of the library: client_options::decompressed_bytes or
    ///   decompressed_ratio.
    /// - `errc::deadline_exceeded` of the library: client_options::body_idle or total.
    /// - Those of client_request::stream, if it is still being read.
    /// - Those of the connection.
    /// @par Cancellation
    /// Nothing is lost.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into);

    /// Reads the rest of the body.
    ///
    /// @param limit  Bytes. Memory grows with the bytes that arrive, not with a size that the
    ///               server announces.
    /// @pre As for read_some().
    ///
    /// @par Errors
    /// - `errc::limit_exceeded` of the library: the body is longer than `limit`. The connection is
    ///   closed.
    /// - Those of read_some(), except for `end_of_stream`.
    /// @par Cancellation
    /// What was read is lost.
    [[nodiscard]] task<result<std::string>> read_all(std::size_t limit);

private:
    friend detail::client_access;
    explicit client_response(std::unique_ptr<detail::client_exchange> exchange) noexcept;

    std::unique_ptr<detail::client_exchange> exchange_; // null only after a move
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
