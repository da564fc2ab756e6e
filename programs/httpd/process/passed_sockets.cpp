#include "httpd/process/passed_sockets.hpp"

#include <simplenet/server/inherited_listeners.hpp>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace httpd {

using simplenet::endpoint;
using simplenet::fail;
using simplenet::result;
using simplenet::unique_fd;
using simplenet::nonblocking::tcp_listener;

result<passed_sockets> passed_sockets::take_all() {
    auto inherited = simplenet::inherited_listeners();
    if (!inherited) return fail(inherited);
    passed_sockets all;
    for (simplenet::inherited_listener& each : *inherited) {
        auto adopted = tcp_listener::adopt(std::move(each.socket));
        if (!adopted) return fail(adopted);
        all.sockets_.push_back(*std::move(adopted));
    }
    return all;
}

namespace {

bool is_at(const tcp_listener& socket, const endpoint& at) noexcept {
    const auto bound = socket.local_endpoint();
    return bound && *bound == at;
}

} // namespace

result<listening_sockets> passed_sockets::copy(const endpoint& at) const {
    std::vector<unique_fd> copies;
    for (const tcp_listener& each : sockets_) {
        if (!is_at(each, at)) continue;
        copies.emplace_back(::fcntl(each.native_handle(), F_DUPFD_CLOEXEC, 0));
        if (!copies.back()) return fail(std::error_code{errno, std::system_category()});
    }
    return adopt_all(std::move(copies));
}

} // namespace httpd
