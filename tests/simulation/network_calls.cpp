// Part of a simulated network: names, and the entry points of system calls.

#include "simulation/message_pieces.hpp"
#include "simulation/network_parts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <unistd.h>

namespace simplenet::v0::simulation {

network::node* network::listener_at(const name& at) {
    auto found = listeners_.find(at);
    if (found == listeners_.end() && family_of(at) != AF_UNIX) {
        found = listeners_.find(any_of_family(at));
    }
    if (found == listeners_.end()) return nullptr;
    // Several listeners share the address by SO_REUSEPORT.
    return nodes_[found
                      ->second[found->second.size() == 1 ? 0 : random_.below(found->second.size())]]
        .get();
}

network::node* network::bound_at(int type, const name& at) {
    auto found = bound_.find({type, at});
    if (found == bound_.end() && family_of(at) != AF_UNIX) {
        found = bound_.find({type, any_of_family(at)});
    }
    return found == bound_.end() ? nullptr : nodes_[found->second].get();
}

network::name network::any_port(const name& host) {
    next_port_ =
        next_port_ == 60999 ? std::uint16_t{32768} : static_cast<std::uint16_t>(next_port_ + 1);
    return with_port(host, next_port_);
}

void network::forget_name(node& of) {
    if (const auto at = bound_.find({of.type, of.local}); at != bound_.end()) {
        if (at->second == of.number) bound_.erase(at);
    }
    if (const auto at = listeners_.find(of.local); at != listeners_.end()) {
        std::erase(at->second, of.number);
        if (at->second.empty()) listeners_.erase(at);
    }
}

bool network::interrupts() noexcept {
    return random_.chance(like_.interrupted);
}

int network::socket(int domain, int type) {
    return give_descriptor(make(domain, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

int network::socketpair(int type, int (&fds)[2]) {
    const int plain = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
    const id first = make(AF_UNIX, plain).number;
    const id second = make(AF_UNIX, plain).number;
    nodes_[first]->peer = second;
    nodes_[second]->peer = first;
    for (const id each : {first, second}) {
        nodes_[each]->connected = true;
        nodes_[each]->remote = unnamed();
    }
    fds[0] = give_descriptor(*nodes_[first]);
    fds[1] = give_descriptor(*nodes_[second]);
    return std::min({fds[0], fds[1], 0});
}

int network::bind(int fd, const sockaddr* at, socklen_t size) {
    node& of_socket = of(fd);
    name wanted = name_of(at, size);
    if (family_of(wanted) != of_socket.domain) return -EINVAL;
    if (of_socket.is_local()) {
        if (wanted.size() == sizeof(sa_family_t)) { // autobind (unix(7))
            std::array<char, 8> text{};
            std::snprintf(text.data(), text.size(), "%05x", next_name_++);
            wanted += '\0';
            wanted += text.data();
        }
    } else if (port_of(wanted) == 0) {
        wanted = any_port(wanted);
    }
    const auto taken = bound_.find({of_socket.type, wanted});
    if (taken != bound_.end()) {
        const bool shared = of_socket.options.contains({SOL_SOCKET, SO_REUSEPORT});
        if (of_socket.is_local() || !of_socket.is_stream() || !shared) return -EADDRINUSE;
    }
    bound_[{of_socket.type, wanted}] = of_socket.number;
    of_socket.local = wanted;
    note(of_socket, "bind", of_socket.is_local() ? 0 : port_of(wanted));
    return 0;
}

int network::listen(int fd, int backlog) {
    node& at = of(fd);
    at.listening = true;
    at.backlog_limit = static_cast<std::size_t>(backlog);
    listeners_[at.local].push_back(at.number);
    note(at, "listen", backlog);
    return 0;
}

int network::accept(int fd) {
    if (!of(fd).listening) return -EINVAL;
    if (of(fd).backlog.empty()) return -EAGAIN;
    if (random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, of(fd).number);
        return -EAGAIN;
    }
    if (random_.chance(like_.shortage)) {
        note(of(fd), "shortage", 0);
        return -EMFILE;
    }
    node& listener = of(fd);
    node& next = *nodes_[listener.backlog.front()];
    listener.backlog.pop_front();
    note(listener, "accept", next.number);
    if (next.dead && random_.chance(500)) return -ECONNABORTED;
    return give_descriptor(next);
}

int network::connect(int fd, const sockaddr* to, socklen_t size) {
    const name wanted = name_of(to, size);
    node& from = of(fd);
    if (family_of(wanted) == AF_UNSPEC) {
        if (from.is_stream() && from.peer != 0 && !from.dead) send_reset(*nodes_[from.peer]);
        reset(from, 0);
        from.connected = false;
        return 0;
    }
    if (family_of(wanted) != from.domain) return -EINVAL;
    if (!from.is_stream()) {
        if (from.is_local()) {
            const auto found = bound_.find({SOCK_DGRAM, wanted});
            if (found == bound_.end()) return -ENOENT;
            from.peer = found->second;
        } else if (from.local.empty()) {
            from.local = any_port(own_host(wanted));
            bound_[{SOCK_DGRAM, from.local}] = from.number;
        }
        from.remote = wanted;
        from.connected = true;
        return 0;
    }
    if (from.connected) return -EISCONN;
    if (from.connecting) return -EALREADY;
    if (from.is_local()) {
        node* const at = listener_at(wanted);
        if (at == nullptr) return bound_.contains({SOCK_STREAM, wanted}) ? -ECONNREFUSED : -ENOENT;
        if (at->backlog.size() > at->backlog_limit || random_.chance(like_.not_yet)) return -EAGAIN;
        node& server = make(AF_UNIX, SOCK_STREAM);
        node& client = of(fd);
        node& listener = *listener_at(wanted);
        server.local = wanted;
        server.remote = client.local;
        server.peer = client.number;
        client.peer = server.number;
        client.remote = wanted;
        server.connected = client.connected = true;
        listener.backlog.push_back(server.number);
        note(client, "connected", server.number);
        tell(listener);
        tell(client);
        return 0;
    }
    if (from.local.empty()) from.local = any_port(own_host(wanted));
    if (is_any(from.local)) from.local = with_port(own_host(wanted), port_of(from.local));
    from.remote = wanted;
    from.connecting = true;
    note(from, "connect", port_of(wanted));
    if (random_.chance(like_.immediate)) {
        knock(from, 0);
        node& again = of(fd);
        if (again.peer != 0) established(again);
        return again.connected ? 0 : -EINPROGRESS;
    }
    schedule(now() + latency(), step::knock, from.number);
    return -EINPROGRESS;
}

int network::shutdown(int fd, int how) {
    node& at = of(fd);
    if (at.listening) {
        forget_name(at);
        at.listening = false;
        tell(at);
        return 0;
    }
    if (!at.connected || at.dead) return -ENOTCONN;
    if (how != SHUT_WR) at.reads_end = true;
    if (how != SHUT_RD && !at.no_more) {
        at.no_more = true;
        note(at, "shutdown", how);
        want_delivery(at);
    }
    tell(at);
    return 0;
}

int network::close(int fd) {
    node& at = of(fd);
    note(at, "close", static_cast<std::int64_t>(at.received.size()));
    if (at.listening || !at.is_stream() || at.peer == 0) forget_name(at);
    at.listening = false;
    for (const id waiting : at.backlog) {
        node& server = *nodes_[waiting];
        if (!server.dead) send_reset(*nodes_[server.peer]);
        server.dead = true;
    }
    at.backlog.clear();
    at.connecting = false;
    at.gone = true;
    if (at.is_stream() && at.peer != 0 && !at.dead) {
        if (at.aborts || !at.received.empty()) {
            at.dead = true;
            at.sent.clear();
            send_reset(*nodes_[at.peer]);
        } else {
            at.no_more = true;
            want_delivery(at);
        }
    }
    at.received.clear();
    at.arrived.clear();
    at.registrations.clear();
    at.fd = -1;
    by_descriptor_[static_cast<std::size_t>(fd)] = nullptr;
    --open_;
    ::close(fd);
    return 0;
}

void network::closed_elsewhere(int fd) {
    epolls_.erase(fd);
}

int network::getsockname(int fd, sockaddr* into, socklen_t& size) {
    node& at = of(fd);
    if (!at.local.empty()) return tell_name(at.local, into, size);
    return tell_name(at.domain == AF_INET6 ? v6(in6addr_any) : v4(INADDR_ANY), into, size);
}

int network::getpeername(int fd, sockaddr* into, socklen_t& size) {
    node& at = of(fd);
    if (!at.connected || at.dead) return -ENOTCONN;
    return tell_name(at.remote, into, size);
}

int network::setsockopt(int fd, int level, int option, const void* value, socklen_t size) {
    node& at = of(fd);
    const auto* const bytes = static_cast<const char*>(value);
    int number = 0;
    std::memcpy(&number, value, std::min<std::size_t>(size, sizeof number));
    if (level == SOL_SOCKET && option == SO_LINGER) {
        linger said{};
        std::memcpy(&said, value, std::min<std::size_t>(size, sizeof said));
        at.aborts = said.l_onoff != 0 && said.l_linger == 0;
    }
    if (level == SOL_SOCKET && option == SO_SNDBUF) {
        at.send_room = static_cast<std::size_t>(std::max(number, 1));
    }
    if (level == SOL_SOCKET && option == SO_RCVBUF) {
        at.receive_room = static_cast<std::size_t>(std::max(number, 1));
    }
    at.options[{level, option}] = {bytes, bytes + size};
    return 0;
}

int network::getsockopt(int fd, int level, int option, void* value, socklen_t& size) {
    node& at = of(fd);
    const auto tell_number = [&](int number) {
        std::memset(value, 0, size);
        std::memcpy(value, &number, std::min<std::size_t>(size, sizeof number));
        return 0;
    };
    if (level == SOL_SOCKET) {
        switch (option) {
        case SO_ERROR:
            return tell_number(at.take_error());
        case SO_TYPE:
            return tell_number(at.type);
        case SO_DOMAIN:
            return tell_number(at.domain);
        case SO_PROTOCOL:
            return tell_number(at.is_local() ? 0 : at.is_stream() ? IPPROTO_TCP : IPPROTO_UDP);
        case SO_ACCEPTCONN:
            return tell_number(at.listening ? 1 : 0);
        case SO_PEERNAME: // also of a connection that was reset
            if (!at.connected) return -ENOTCONN;
            return tell_name(at.remote, static_cast<sockaddr*>(value), size);
        case SO_PEERCRED: {
            const ucred self{.pid = ::getpid(), .uid = ::getuid(), .gid = ::getgid()};
            std::memcpy(value, &self, std::min<std::size_t>(size, sizeof self));
            return 0;
        }
        default:
            break;
        }
    }
    const auto known = at.options.find({level, option});
    if (known == at.options.end()) return tell_number(0);
    std::memset(value, 0, size);
    std::memcpy(value, known->second.data(), std::min<std::size_t>(size, known->second.size()));
    return 0;
}

int network::poll(int fd, short events) {
    const unsigned asked = static_cast<unsigned>(events) | POLLERR | POLLHUP;
    return static_cast<int>(look(of(fd)) & asked);
}

bool network::has_path(const char* path) const {
    const name wanted = name_of_path(path);
    return bound_.contains({SOCK_STREAM, wanted}) || bound_.contains({SOCK_DGRAM, wanted});
}

int network::unlink(const char* path) {
    const name wanted = name_of_path(path);
    std::size_t gone = listeners_.erase(wanted);
    gone += bound_.erase({SOCK_STREAM, wanted});
    gone += bound_.erase({SOCK_DGRAM, wanted});
    return gone == 0 ? -ENOENT : 0;
}

ssize_t network::recv(int fd, void* data, std::size_t size, int flags) {
    iovec place{.iov_base = data, .iov_len = size};
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    return recvmsg(fd, message, flags);
}

ssize_t network::send(int fd, const void* data, std::size_t size, int flags) {
    iovec piece{.iov_base = const_cast<void*>(data), .iov_len = size};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    return sendmsg(fd, message, flags);
}

ssize_t network::recvmsg(int fd, msghdr& message, int flags) {
    node& at = of(fd);
    if (!at.is_stream()) return give_datagram(at, message, flags);
    message.msg_flags = 0;
    message.msg_controllen = 0;
    return give_stream(at, pieces_of(message), flags);
}

ssize_t network::sendmsg(int fd, const msghdr& message, int flags) {
    static_cast<void>(flags);
    node& from = of(fd);
    const auto pieces = pieces_of(message);
    if (control_value<int>(message, SOL_SOCKET, SCM_RIGHTS) != nullptr) return -EINVAL;
    if (from.is_stream()) return take_stream(from, pieces, size_of(pieces));

    std::vector<std::byte> bytes;
    for_each_piece(pieces, size_of(pieces), [&](const std::byte* from_here, std::size_t size) {
        bytes.insert(bytes.end(), from_here, from_here + size);
    });
    const name to =
        message.msg_name == nullptr
            ? name{}
            : name_of(static_cast<const sockaddr*>(message.msg_name), message.msg_namelen);
    const auto* const segment = control_value<std::uint16_t>(message, IPPROTO_UDP, UDP_SEGMENT);
    if (segment == nullptr) return send_datagram(from, to, std::move(bytes));
    const std::size_t whole = bytes.size();
    const std::size_t length = *segment;
    for (std::size_t at = 0; at < whole; at += length) {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + length, whole));
        const ssize_t outcome = send_datagram(of(fd), to, {begin, end});
        if (outcome < 0) return at == 0 ? outcome : static_cast<ssize_t>(at);
    }
    return static_cast<ssize_t>(whole);
}

ssize_t network::sendfile(int to, int from, off_t offset, std::size_t size) {
    std::vector<std::byte> bytes(std::min(size, room_to_send(of(to)) + 1));
    const ssize_t count = ::pread(from, bytes.data(), bytes.size(), offset);
    if (count < 0) return -errno;
    if (count == 0) return 0;
    return send(to, bytes.data(), static_cast<std::size_t>(count), 0);
}

} // namespace simplenet::v0::simulation
