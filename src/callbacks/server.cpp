#include <simplenet/callbacks/server.hpp>

#include "callbacks/callback_connection.hpp"

#include <system_error>
#include <utility>

namespace simplenet::v0 {
namespace detail {

namespace {

tcp_server listen_or_throw(event_loop_group& group, const endpoint& at,
                           const server_options& options) {
    auto listening = tcp_server::listen(group, at, options);
    if (!listening) throw std::system_error{listening.error(), "callbacks::server"};
    return *std::move(listening);
}

/// The handler of the tcp_server.
struct callback_handler {
    callbacks::handlers handlers;

    // The copy of a loop outlives the tasks that it has started.
    task<> operator()(tcp_stream stream, const connection_info& info) {
        return serve_callbacks(handlers, std::move(stream), info.peer, info.local);
    }
};

} // namespace

} // namespace detail

namespace callbacks {

server::server(event_loop_group& group, const endpoint& at, handlers handlers,
               const server_options& options)
    : handlers_{std::move(handlers)}
    , server_{detail::listen_or_throw(group, at, options)} {}

void server::start() {
    if (is_started_) return;
    is_started_ = true;
    const auto serves = server_.serve(detail::callback_handler{handlers_});
    if (!serves && serves.error() != std::errc::operation_canceled) {
        throw std::system_error{serves.error(), "callbacks::server"};
    }
}

void server::stop(std::chrono::nanoseconds grace) noexcept {
    server_.request_shutdown(grace);
}

task<shutdown_report> server::shutdown(std::chrono::nanoseconds grace) {
    return server_.shutdown(grace);
}

endpoint server::local_endpoint() const noexcept {
    return server_.local_endpoint();
}

server_statistics server::statistics() const {
    return server_.statistics();
}

} // namespace callbacks
} // namespace simplenet::v0
