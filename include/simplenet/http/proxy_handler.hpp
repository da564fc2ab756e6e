#pragma once
// http::proxy_handler: a reverse proxy as a handler. Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/backend.hpp>
#include <simplenet/http/proxy_options.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>

#include <memory>
#include <vector>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class proxy_core;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Passes requests on to backends over HTTP/1.1, and their answers back.
///
/// A request means the same to the backend as to this server: its path is the normalised one, its
/// framing is written anew, and what belongs to the connection or tells lies about the client stays
/// behind. An answer that breaks the protocol becomes 502; one that ends early is aborted, and
/// never looks complete. Trailers are dropped, both ways. Redirects of a backend are not rewritten:
/// it is told the host that the client asked for. No upgrade is passed on but that to WebSocket,
/// whose bytes then go both ways until both sides have ended, an idle limit passes, or the server
/// shuts down.
///
/// A request is sent again, to the same backend over a new connection or to another one, if nothing
/// of an answer has come, and either nothing of the request has left or its method is idempotent
/// and its body can be repeated; not after proxy_options::head has passed. So a connection that a
/// backend closes while it is unused fails no GET.
///
/// A client that closes its sending side gets its answer, unless its request had to wait for a
/// connection or another one waits for its own: then 503. When writing to a client fails, the
/// backend's connection is closed at once.
///
/// A handle: copies share the backends and what is known of them, and so do the loops. Any thread,
/// but for the calls with a request.
///
/// @par Example
/// @snippet http_proxy.cpp handler
class proxy_handler {
public:
    /// Throws std::system_error with `std::errc::invalid_argument` for options that cannot be
    /// used: no backend, a malformed address or weight, a name or value that cannot be sent.
    explicit proxy_handler(const proxy_options& options);

    /// Answers the request, by itself with a line of text if no backend does.
    ///
    /// @par Errors
    /// - Those of request::read_some(), for which the server has an answer.
    /// - `errc::gateway_failed`: the answer was cut off, and is aborted.
    /// - Those of response::write_some().
    /// @par Cancellation
    /// Closes the connection of the backend. A request that has left in part may have an effect.
    [[nodiscard]] task<result<>> operator()(request& asked, response& answer) const;

    /// The same, for programs that have their own pages for errors.
    ///
    /// @return 0: answered. Otherwise nothing was answered, and no field was set; a status that
    ///         tells why: 502, a backend could not be reached, or answers nonsense; 504, one took
    ///         too long; 503, no connection became free; 507, 500, the body could not be stored;
    ///         413, it turned out to be larger than the limit; 400, 501, a bad Max-Forwards, or a
    ///         TRACE that ends here.
    [[nodiscard]] task<result<unsigned>> attempt(request& asked, response& answer) const;

    /// The backends, in the order of the options.
    [[nodiscard]] std::vector<backend_status> backends() const;

private:
    std::shared_ptr<detail::proxy_core> core_;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
