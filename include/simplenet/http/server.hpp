#pragma once
// http::server: an HTTP server on every loop of a group; run_server(). Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/compression_options.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/router.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/server/run_server.hpp>
#include <simplenet/server/tcp_server.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

namespace simplenet::v0::tls {
class context;
} // namespace simplenet::v0::tls

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class server_state;
struct server_access;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// What became of a request, for a log of them.
struct answered_request {
    /// Valid during the call. Its method() is empty if the head could not be understood; then only
    /// the addresses are known.
    const request& asked;
    /// 101 to 599; 0: the client got no answer.
    unsigned status = 0;
    /// Bytes of the answer's body that were taken for sending, without the framing of chunks.
    std::uint64_t body_bytes = 0;
    /// From the first byte of the request, or for one that was pipelined from the end of the one
    /// before it, until the answer was taken for sending.
    std::chrono::nanoseconds duration{0};
    /// False: the client can see that the answer is cut.
    bool complete = false;
};

/// How an http::server serves.
struct server_options {
    /// Of the connections. `idle_timeout` applies beside the times of `limits`.
    simplenet::server_options server = {};
    /// What a client may cost: the size of its requests, and the time it takes. A request beyond a
    /// limit is refused, or its connection ends.
    http::limits limits = {};
    /// Serves https. A context of a server, which should offer `http/1.1` by ALPN. Copied by
    /// listen() and adopt(). Null: http.
    const tls::context* tls = nullptr;
    /// Which answers of all routes are compressed while they are sent. None by default.
    compression_options compression = {};
    /// Called with `context` for every request, also for those that the server refuses, when its
    /// answer is over; for one that was upgraded when its handler has ended or, without a handler
    /// of its own, at the upgrade. On the loop of the connection, so by several threads at once;
    /// must not throw, and must not block. Null: nothing is called, and no time is taken.
    void (*on_answered)(const answered_request& what, void* context) noexcept = nullptr;
    /// The second argument of `on_answered`.
    void* context = nullptr;
};

/// What a server has done since it began.
struct server_statistics : simplenet::server_statistics {
    std::uint64_t requests = 0;          ///< Whose head was complete.
    std::uint64_t handshakes_failed = 0; ///< As tls::server_statistics.
};

/// An HTTP server on the loops of an event_loop_group.
///
/// Serves from its creation. A connection lives on one loop, and so do the handlers of its
/// requests. It has ended when its shutdown has, or when its group has stopped. May be moved while
/// it serves; one that was moved from can only be destroyed or assigned to.
///
/// @par Thread safety
/// Moving and destroying it: one thread at a time. Everything else: any thread.
/// @par Example
/// @snippet http.cpp server
class server {
public:
    /// Listens at `at`, as tcp_server::listen() does, and serves.
    ///
    /// @pre `group` lives until the server is destroyed or `group` was stopped and joined.
    ///
    /// @par Errors
    /// - Those of tcp_server::listen().
    /// - `tls::errc::bad_configuration`: `options.tls` is a client's context.
    /// - `std::errc::invalid_argument`: `options.compression.level` is not 1 to 9, or
    ///   `options.limits.header_count` is 0.
    /// - `std::errc::operation_not_supported`: `options.tls` is set, and the library was built
    ///   without TLS.
    [[nodiscard]] static result<server> listen(event_loop_group& group, const endpoint& at,
                                               router routes, const server_options& options = {});
    /// Takes listeners, as tcp_server::adopt() does, and serves.
    [[nodiscard]] static result<server> adopt(event_loop_group& group,
                                              std::vector<nonblocking::tcp_listener> listeners,
                                              router routes, const server_options& options = {});

    /// Replaces the routes from the next request of each connection on, and the TLS context from
    /// the next handshake on. Requests that have begun end with the old ones.
    ///
    /// @param with  Null: the context stays. Copied.
    /// @return False: `with` is a client's context, or the server does not use TLS. Nothing was
    ///         replaced.
    bool replace(router routes, const tls::context* with = nullptr);
    /// As replace(), with limits, compression and on_answered of `options` too. The limits on a
    /// head hold from the first request on a connection that begins behind the call. Of
    /// `options.server` nothing is replaced: where that is to change, adopt() the sockets of
    /// duplicate_listeners() for a server with other options, and shut this one down.
    ///
    /// @return False: as above, or `options` are such that listen() refuses them. Nothing was
    ///         replaced.
    bool replace(router routes, const server_options& options);

    /// As of tcp_server.
    [[nodiscard]] endpoint local_endpoint() const noexcept { return tcp_.local_endpoint(); }

    /// As of tcp_server: connections that wait for a request are closed, every request that has
    /// begun is answered within `grace`, with `Connection: close`, and WebSockets are closed with
    /// code 1001, see websocket::read_message().
    [[nodiscard]] task<shutdown_report> shutdown(std::chrono::nanoseconds grace) {
        return tcp_.shutdown(grace);
    }
    /// As of tcp_server.
    void request_shutdown(std::chrono::nanoseconds grace) noexcept { tcp_.request_shutdown(grace); }
    /// As of tcp_server.
    [[nodiscard]] result<std::vector<unique_fd>> duplicate_listeners() const {
        return tcp_.duplicate_listeners();
    }
    /// As of tcp_server.
    [[nodiscard]] bool is_accepting() const noexcept { return tcp_.is_accepting(); }
    /// As of tcp_server, with the requests.
    [[nodiscard]] server_statistics statistics() const;

private:
    friend detail::server_access;
    server(tcp_server tcp, std::shared_ptr<detail::server_state> state) noexcept
        : state_{std::move(state)}
        , tcp_{std::move(tcp)} {}

    std::shared_ptr<detail::server_state> state_;
    tcp_server tcp_;
};

/// How http::run_server() serves.
struct run_server_options {
    /// Of the server: limits, TLS, compression, and how connections are accepted.
    http::server_options server = {};
    /// `group.loop.handle_signals` also applies to the calling thread.
    event_loop_group_options group = {};
    /// Of the shutdown, see server::shutdown().
    std::chrono::nanoseconds grace = std::chrono::seconds{10};
    /// Called on the calling thread, with `context`, when connections are served. Null: nothing.
    void (*on_listening)(http::server& server, void* context) = nullptr;
    /// The second argument of `on_listening`. Borrowed until that has returned.
    void* context = nullptr;
};

/// Serves HTTP at `at` on a new group of loops until it is stopped, as simplenet::run_server()
/// does. Blocks the calling thread.
///
/// @return How the connections ended that were open at the beginning of the shutdown.
/// @pre No loop runs on this thread.
///
/// @par Errors
/// Those of simplenet::run_server() and server::listen().
/// @par Example
/// @snippet http_first.cpp hello
result<shutdown_report> run_server(const endpoint& at, router routes,
                                   run_server_options options = {}, std::stop_token stop = {});

} // namespace simplenet::v0::http

#pragma GCC visibility pop
