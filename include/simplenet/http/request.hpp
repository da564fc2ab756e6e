#pragma once
// http::request: a request that a handler answers. Layer http.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/fields.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class exchange;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// A request, and its body as an async_reader.
///
/// Belongs to the server, which lends it to a handler. Views of it live until the handler's task
/// ends. Loop thread only.
///
/// @par Example
/// @snippet http_first.cpp hello
class request {
public:
    request(const request&) = delete;
    request& operator=(const request&) = delete;

    /// As the client wrote it; methods are case-sensitive (RFC 9110, section 9.1).
    [[nodiscard]] std::string_view method() const noexcept { return method_; }
    /// As the client wrote it: usually a path with a query.
    [[nodiscard]] std::string_view target() const noexcept { return target_; }
    /// The path of the target, normalised: split at `/`, then each segment decoded once, and empty
    /// segments and dot segments removed. Begins with `/`, or is `*`.
    ///
    /// An encoded slash stays `%2F`, and a percent sign stays `%25` where it would otherwise look
    /// like one, so that two different paths never become one. parameter() decodes both.
    [[nodiscard]] std::string_view path() const noexcept { return path_; }
    /// What follows the first `?` of the target, not decoded. Empty if there is none.
    [[nodiscard]] std::string_view query() const noexcept { return query_; }
    /// The host that the client asked for, with its port if the client wrote one: of the target if
    /// that is a URL, else of the Host field (RFC 9112, section 3.2.2). May be empty.
    [[nodiscard]] std::string_view host() const noexcept { return host_; }
    /// 10 for HTTP/1.0, 11 for HTTP/1.1 and any later minor version.
    [[nodiscard]] unsigned version() const noexcept { return version_; }

    /// In the order of arrival, without the trailers.
    [[nodiscard]] const http::fields& fields() const noexcept { return fields_; }
    /// The fields behind a chunked body, which are not merged into fields(). Empty until a read has
    /// returned `end_of_stream`.
    [[nodiscard]] const http::fields& trailers() const noexcept { return trailers_; }

    /// What the route's `{name}` or `{name...}` matched, decoded. Empty if the route has no such
    /// parameter.
    [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;

    /// The client: that of set_peer(), else connection_peer().
    [[nodiscard]] endpoint peer() const noexcept;
    /// The other end of the connection, as simplenet::connection_info::peer.
    [[nodiscard]] endpoint connection_peer() const noexcept;
    /// The address to which the client connected, as simplenet::connection_info::local.
    [[nodiscard]] endpoint connection_local() const noexcept;
    /// Whether the client uses TLS: what set_secure() has set, else whether the connection does.
    [[nodiscard]] bool secure() const noexcept;
    /// The name of the user that set_user() has set. Empty: nobody has been authenticated.
    [[nodiscard]] std::string_view user() const noexcept { return user_; }
    /// What set_label() has set.
    [[nodiscard]] std::string_view label() const noexcept { return label_; }

    /// The size of the body if the client has told it: 0 if there is no body, empty if it is
    /// chunked.
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;

    /// Reads at least one byte of the body, and at most `into.size()`.
    ///
    /// The first read sends `100 Continue` if the client expects it, unless bytes of the body have
    /// arrived.
    ///
    /// @pre `into` is not empty, and no other read of this request is in flight.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Errors
    /// A handler that returns or throws one of these before it has answered, answers with the
    /// status in brackets.
    /// - `errc::end_of_stream` of the library: the body is over: no failure, so a handler does
    ///   not return it. The next request is never read.
    /// - `errc::incomplete_message`: the connection ended before the body did. (No answer.)
    /// - `errc::bad_request`: the chunks are malformed. (400)
    /// - `errc::body_too_large`: the body is larger than limits::body. (413)
    /// - `errc::header_too_large`: the trailers are larger than the limits. (431)
    /// - `errc::deadline_exceeded` of the library: nothing came within limits::body_idle, or less
    ///   than limits::minimum_rate. (408)
    /// - Those of the connection.
    /// @par Cancellation
    /// Nothing is lost.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into);

    /// Reads the rest of the body.
    ///
    /// @param limit  Bytes.
    /// @pre No other read of this request is in flight.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded` of the library: the body is longer than `limit`. If the client has
    ///   told its size, nothing has been read. (413)
    /// - Those of read_some(), except for `end_of_stream`.
    /// @par Cancellation
    /// What was read is lost.
    [[nodiscard]] task<result<std::string>> read_all(std::size_t limit);

    // --- for handlers that stand in front of others ---

    /// Lets path() be another one, for the handlers that are called next: the path of an error
    /// page, of the index of a directory, of an application's front controller. target(), query()
    /// and parameter() stay. Throws std::bad_alloc.
    ///
    /// @param path  Copied.
    /// @pre `path` is a path as path() gives them, and is not `*`.
    void rewrite(std::string_view path);
    /// Replaces the limit on the body, limits::body or that of the route. Refuses nothing by
    /// itself: the next read fails with `errc::body_too_large`, and if the client has told a size
    /// above the limit, it does so before anything is read and before the client is told to
    /// continue.
    ///
    /// @param bytes  0: no limit.
    void limit_body(std::uint64_t bytes) noexcept;
    /// Lets user() be `name`. Throws std::bad_alloc.
    ///
    /// @param name  Copied.
    void set_user(std::string_view name);
    /// Lets label() be `text`: a word for server_options::on_answered, such as the site.
    ///
    /// @param text  Borrowed until on_answered returns.
    void set_label(std::string_view text) noexcept { label_ = text; }
    /// Lets peer() be the client that a trusted proxy has told.
    void set_peer(const endpoint& client) noexcept;
    /// Lets secure() be what a trusted proxy has told.
    void set_secure(bool secure) noexcept;

private:
    friend detail::exchange;
    explicit request(detail::exchange& of) noexcept
        : exchange_{&of} {}

    detail::exchange* exchange_; // contains this
    std::string_view method_;
    std::string_view target_;
    std::string_view path_;
    std::string_view query_;
    std::string_view host_;
    std::string_view user_;
    std::string_view label_;
    unsigned version_ = 11;
    http::fields fields_;
    http::fields trailers_;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
