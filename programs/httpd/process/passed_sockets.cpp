#include "httpd/process/passed_sockets.hpp"

#include <simplenet/server/inherited_listeners.hpp>

#include <algorithm>
#include <utility>

namespace httpd {

using simplenet::endpoint;
using simplenet::fail;
using simplenet::result;
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

bool passed_sockets::has(const endpoint& at) const {
    return std::ranges::any_of(sockets_, [&](const tcp_listener& each) { return is_at(each, at); });
}

listening_sockets passed_sockets::take(const endpoint& at) {
    listening_sockets taken;
    listening_sockets others;
    for (auto& each : sockets_) {
        (is_at(each, at) ? taken : others).push_back(std::move(each));
    }
    sockets_ = std::move(others);
    return taken;
}

} // namespace httpd
