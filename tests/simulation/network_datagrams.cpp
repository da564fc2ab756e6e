// Part of a simulated network: datagrams.

#include "simulation/message_pieces.hpp"
#include "simulation/network_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

void network::put(node& into, datagram&& what) {
    if (into.fd < 0) return;
    note(into, "arrive", static_cast<std::int64_t>(what.bytes.size()));
    into.arrived.push_back(std::move(what));
    tell(into);
}

void network::arrive(std::uint32_t flight) {
    auto [to, what] = std::move(flights_[flight]);
    free_flights_.push_back(flight);
    if (nodes_[to]->arrived.size() >= 1000) return;
    put(*nodes_[to], std::move(what));
}

ssize_t network::send_datagram(node& from, const name& to, std::vector<std::byte>&& bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (from.error != 0) return -from.take_error();
    if (random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, from.number);
        return -EAGAIN;
    }
    if (from.is_local()) {
        node* const at = to.empty() ? (from.peer == 0 ? nullptr : nodes_[from.peer].get())
                                    : bound_at(SOCK_DGRAM, to);
        if (at == nullptr) return to.empty() ? -ENOTCONN : -ENOENT;
        if (at->gone) return -ECONNREFUSED;
        if (at->arrived.size() >= most_datagrams) return -EAGAIN;
        const bool named = from.local.size() > sizeof(sa_family_t);
        put(*at, {named ? from.local : name{}, std::move(bytes)});
        return size;
    }
    const name& target = to.empty() ? from.remote : to;
    if (target.empty()) return -EDESTADDRREQ;
    if (size > 65'507) return -EMSGSIZE;
    if (from.local.empty()) {
        from.local = any_port(own_host(target));
        bound_[{SOCK_DGRAM, from.local}] = from.number;
    }
    const name origin =
        is_any(from.local) ? with_port(own_host(target), port_of(from.local)) : from.local;
    note(from, "send", size);
    if (parted(origin, target) || random_.chance(like_.lost)) {
        note(from, "lost", size);
        return size;
    }
    node* const at = bound_at(SOCK_DGRAM, target);
    if (at == nullptr || at->fd < 0) {
        if (from.connected) schedule(now() + latency(), step::refuse, from.number);
        return size;
    }
    if (at->connected && at->remote != origin) return size;
    for (int copies = random_.chance(like_.doubled) ? 2 : 1; copies > 0; --copies) {
        std::uint32_t flight = 0;
        if (free_flights_.empty()) {
            flight = static_cast<std::uint32_t>(flights_.size());
            flights_.emplace_back();
        } else {
            flight = free_flights_.back();
            free_flights_.pop_back();
        }
        flights_[flight] = {at->number, {origin, bytes}};
        schedule(now() + latency(), step::arrive, at->number, flight);
    }
    return size;
}

ssize_t network::give_datagram(node& to, msghdr& message, int flags) {
    if ((flags & MSG_ERRQUEUE) != 0) return -EAGAIN;
    if (to.error != 0) return -to.take_error();
    if (to.arrived.empty()) return to.is_local() && to.reads_end ? 0 : -EAGAIN;
    if (random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, to.number);
        return -EAGAIN;
    }
    const datagram& next = to.arrived.front();
    const std::size_t room = size_of(pieces_of(message));
    const std::size_t count = std::min(room, next.bytes.size());
    std::size_t at = 0;
    for_each_piece(pieces_of(message), count, [&](std::byte* into, std::size_t size) {
        std::memcpy(into, next.bytes.data() + at, size);
        at += size;
    });
    message.msg_flags = count < next.bytes.size() ? MSG_TRUNC : 0;
    message.msg_controllen = 0;
    if (message.msg_name != nullptr) {
        static_cast<void>(
            tell_name(next.from, static_cast<sockaddr*>(message.msg_name), message.msg_namelen));
    }
    const auto length = static_cast<ssize_t>((flags & MSG_TRUNC) != 0 ? next.bytes.size() : count);
    if ((flags & MSG_PEEK) != 0) return length;
    note(to, "receive", length);
    to.arrived.pop_front();
    // Senders that found the queue full.
    for (const auto& each : nodes_) {
        if (each && to.is_local() && each->peer == to.number && each->fd >= 0) tell(*each);
    }
    return length;
}

} // namespace simplenet::v0::simulation
