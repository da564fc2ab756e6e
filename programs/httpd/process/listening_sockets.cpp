#include "httpd/process/listening_sockets.hpp"

#include <simplenet/server/tcp_server.hpp>

#include <utility>

namespace httpd {

using simplenet::fail;
using simplenet::result;

result<listening_sockets> open_sockets(simplenet::event_loop_group& group,
                                       const simplenet::endpoint& at,
                                       const simplenet::listen_options& options) {
    // A server that never serves: it knows how the loops share an address.
    const auto server = simplenet::tcp_server::listen(group, at, {.listen = options});
    if (!server) return fail(server);
    return adopt_all(server->duplicate_listeners());
}

result<listening_sockets> adopt_all(result<std::vector<simplenet::unique_fd>> sockets) {
    if (!sockets) return fail(sockets);
    listening_sockets all;
    for (simplenet::unique_fd& each : *sockets) {
        auto adopted = simplenet::nonblocking::tcp_listener::adopt(std::move(each));
        if (!adopted) return fail(adopted);
        all.push_back(*std::move(adopted));
    }
    return all;
}

} // namespace httpd
