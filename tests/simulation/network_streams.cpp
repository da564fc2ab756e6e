// Part of a simulated network: connections, and the bytes of streams.

#include "simulation/message_pieces.hpp"
#include "simulation/network_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace simplenet::v0::simulation {

using namespace std::chrono_literals;

namespace {

constexpr unsigned most_knocks = 6; // tcp(7), tcp_syn_retries

} // namespace

/// The bytes that a send has room for. A local stream has one queue, the one of its reader.
std::size_t network::room_to_send(const node& from) const noexcept {
    if (from.is_local()) return nodes_[from.peer]->room_to_receive();
    return from.send_room - std::min(from.send_room, from.sent.size());
}

std::size_t network::room_in_all(const node& from) const noexcept {
    return from.is_local() ? nodes_[from.peer]->receive_room : from.send_room;
}

void network::want_delivery(node& from) {
    if (from.delivering || from.peer == 0 || from.end_sent) return;
    if (from.sent.empty() && !from.no_more) return;
    if (from.is_local()) return deliver(from);
    from.delivering = true;
    schedule(now() + latency(), step::deliver, from.number);
}

void network::deliver(node& from) {
    if (from.dead) return;
    node& to = *nodes_[from.peer];
    if (to.connecting) established(to);
    if (to.gone && !from.sent.empty()) {
        reset(to, EPIPE); // bytes that it had still to send are lost
        return reset(from, from.is_local() || from.end_received ? EPIPE : ECONNRESET);
    }
    std::size_t count = std::min(from.sent.size(), to.room_to_receive());
    if (count > 1 && !from.is_local() && random_.chance(like_.cut)) {
        count = random_.size_up_to(count);
    }
    if (count != 0) {
        to.received.add(from.sent.data(), count);
        from.sent.drop(count);
        note(from, "deliver", static_cast<std::int64_t>(count));
        tell(to);
        if (from.wants_room && (readiness(from) & EPOLLOUT) != 0) {
            from.wants_room = false;
            tell(from);
        }
    }
    if (!from.sent.empty()) {
        if (to.room_to_receive() != 0) {
            from.delivering = true;
            schedule(now() + (from.is_local() ? 0ns : latency()), step::deliver, from.number);
        }
    } else if (from.no_more && !from.end_sent) {
        if (count != 0 && random_.chance(500)) {
            from.delivering = true;
            schedule(now() + latency(), step::deliver, from.number);
        } else {
            finish_sending(from);
        }
    }
}

void network::finish_sending(node& from) {
    node& to = *nodes_[from.peer];
    from.end_sent = true;
    to.end_received = true;
    note(from, "end", 0);
    tell(to);
    tell(from);
}

/// `reader` took some bytes, so its window opens.
void network::make_way(node& reader) {
    if (reader.peer == 0) return;
    node& writer = *nodes_[reader.peer];
    want_delivery(writer);
    if (writer.is_local() && writer.wants_room && (readiness(writer) & EPOLLOUT) != 0) {
        writer.wants_room = false;
        tell(writer);
    }
}

void network::reset(node& at, int error) {
    if (at.dead) return;
    at.dead = true;
    at.connecting = false;
    at.error = error;
    at.sent.clear();
    note(at, "reset", error);
    tell(at);
}

void network::send_reset(node& to) {
    if (to.is_local()) return reset(to, ECONNRESET);
    schedule(now() + latency(), step::reset, to.number);
}

void network::abort(int fd) {
    node& one = of(fd);
    if (one.peer != 0) send_reset(*nodes_[one.peer]);
    send_reset(one);
}

void network::knock(node& client, unsigned attempt) {
    if (!client.connecting || client.fd < 0) return;
    node* const at = listener_at(client.remote);
    const bool lost = parted(client.local, client.remote) ||
                      (at != nullptr && at->backlog.size() > at->backlog_limit);
    if (lost) {
        if (attempt == most_knocks) return reset(client, ETIMEDOUT);
        return schedule(now() + 1s * (1 << attempt), step::knock, client.number, attempt + 1);
    }
    if (at == nullptr) return schedule(now() + latency(), step::refuse, client.number);
    node& server = make(client.domain, SOCK_STREAM);
    node& listener = *listener_at(client.remote); // make() moved only the table
    server.local = client.remote;
    server.remote = client.local;
    server.peer = client.number;
    server.connected = true;
    server.receive_room = listener.receive_room;
    server.send_room = listener.send_room;
    client.peer = server.number;
    listener.backlog.push_back(server.number);
    note(listener, "knock", client.number);
    tell(listener);
    schedule(now() + latency(), step::answer, client.number);
}

void network::established(node& client) {
    if (!client.connecting) return;
    client.connecting = false;
    client.connected = true;
    note(client, "connected", 0);
    tell(client);
}

ssize_t network::take_stream(node& from, std::span<const iovec> pieces, std::size_t most) {
    if (from.error != 0) return -from.take_error();
    if (from.no_more || from.dead) return -EPIPE;
    if (from.connecting) return -EAGAIN;
    if (!from.connected) return from.is_local() ? -ENOTCONN : -EPIPE;
    if (from.is_local() && nodes_[from.peer]->gone) return -EPIPE;
    std::size_t count = std::min(most, room_to_send(from));
    if (most != 0 && (count == 0 || random_.chance(like_.not_yet))) {
        if (count != 0) schedule(now() + latency(), step::tell, from.number);
        from.wants_room = true;
        return -EAGAIN;
    }
    if (count > 1 && random_.chance(like_.cut)) count = random_.size_up_to(count);
    for_each_piece(pieces, count,
                   [&](const std::byte* bytes, std::size_t size) { from.sent.add(bytes, size); });
    note(from, "send", static_cast<std::int64_t>(count));
    want_delivery(from);
    return static_cast<ssize_t>(count);
}

ssize_t network::give_stream(node& to, std::span<const iovec> places, int flags) {
    const std::size_t most = size_of(places);
    if (to.received.empty()) {
        if (to.error != 0) return -to.take_error();
        if (to.end_received || to.reads_end || to.dead) {
            note(to, "receive end", 0);
            return 0;
        }
        if (!to.connected) return to.connecting ? -EAGAIN : -ENOTCONN;
        return -EAGAIN;
    }
    if ((flags & MSG_PEEK) == 0 && random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, to.number);
        return -EAGAIN;
    }
    std::size_t count = std::min(most, to.received.size());
    if (count > 1 && random_.chance(like_.cut)) count = random_.size_up_to(count);
    std::size_t at = 0;
    for_each_piece(places, count, [&](std::byte* into, std::size_t size) {
        std::memcpy(into, to.received.data() + at, size);
        at += size;
    });
    if ((flags & MSG_PEEK) != 0) return static_cast<ssize_t>(count);
    to.received.drop(count);
    note(to, "receive", static_cast<std::int64_t>(count));
    // Fewer bytes than requested: the rest must appear to have arrived after this call.
    if (count < most && !to.received.empty()) tell(to);
    make_way(to);
    return static_cast<ssize_t>(count);
}

} // namespace simplenet::v0::simulation
