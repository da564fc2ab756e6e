#pragma once
// httpd::status_server: /metrics, /health, and a page for people. See docs/usage/httpd-logs.md.

#include "httpd/status/status_board.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/server.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/runtime/event_loop_group.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace httpd {

/// What the status server serves; every other path is 404. The figures are collected on a thread of
/// run_blocking(), /health answers on its loop.
///
/// @param hosts  The names by which it may be asked, as configuration::status_hosts. Addresses and
///     `localhost` cannot be rebound, and browsers always send a Host. `/health` answers to every
///     name, for load balancers.
[[nodiscard]] simplenet::http::router status_routes(std::shared_ptr<const status_board> board,
                                                    const std::vector<std::string>& hosts = {});

/// How the status server serves: with limits that are as small as its requests.
[[nodiscard]] simplenet::http::server_options status_options();

/// An http::server of its own, on the loops of the program.
class status_server {
public:
    /// @param sockets  They listen already.
    ///
    /// @par Errors
    /// - Those of http::server::adopt().
    [[nodiscard]] static simplenet::result<status_server>
    adopt(simplenet::event_loop_group& group,
          std::vector<simplenet::nonblocking::tcp_listener> sockets,
          std::shared_ptr<const status_board> board, const std::vector<std::string>& hosts);

    /// From the next request of each connection on.
    void replace(std::shared_ptr<const status_board> board, const std::vector<std::string>& hosts) {
        server_.replace(status_routes(std::move(board), hosts));
    }

    /// As of http::server.
    [[nodiscard]] simplenet::result<std::vector<simplenet::unique_fd>> duplicate_listeners() const {
        return server_.duplicate_listeners();
    }
    [[nodiscard]] simplenet::endpoint local_endpoint() const noexcept {
        return server_.local_endpoint();
    }

private:
    explicit status_server(simplenet::http::server server) noexcept
        : server_{std::move(server)} {}

    simplenet::http::server server_;
};

} // namespace httpd
