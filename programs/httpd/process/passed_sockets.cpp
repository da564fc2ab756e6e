#include "httpd/process/passed_sockets.hpp"

#include <simplenet/server/inherited_listeners.hpp>

#include <algorithm>
#include <iterator>
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

listening_sockets passed_sockets::take(const endpoint& at) {
    const auto is_other = [&](const tcp_listener& each) {
        const auto bound = each.local_endpoint();
        return !bound || *bound != at;
    };
    const auto first = std::ranges::stable_partition(sockets_, is_other).begin();
    listening_sockets taken{std::move_iterator{first}, std::move_iterator{sockets_.end()}};
    sockets_.erase(first, sockets_.end());
    return taken;
}

} // namespace httpd
