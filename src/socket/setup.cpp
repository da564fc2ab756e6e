#include "socket/setup.hpp"

#include "ip/native.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>
#include <simplenet/socket/detail/option_calls.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <netinet/in.h>
#include <poll.h>

namespace simplenet::v0::detail {

namespace {

int domain_of(const ip_address& address) noexcept {
    return address.is_v4() ? AF_INET : AF_INET6;
}

result<unique_fd> open_socket(int domain, int type, sys::mode waiting) noexcept {
    const int fd = sys::socket(domain, type, 0, waiting);
    if (fd < 0) return fail(sys::error_from(fd));
    return unique_fd{fd};
}

/// What must be set before an IP socket is bound.
result<> prepare_bind(int fd, const ip_address& at, bool reuse_address, bool reuse_port,
                      bool v6_only) noexcept {
    if (reuse_address) {
        if (auto set = options::set_reuse_address(fd, true); !set) return set;
    }
    if (reuse_port) {
        if (auto set = options::set_reuse_port(fd, true); !set) return set;
    }
    if (at.is_v4()) return {};
    return sys::to_result(
        sys::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, static_cast<int>(v6_only)));
}

result<> bind_to(int fd, const native_address& at) noexcept {
    return sys::to_result(sys::bind(fd, at.data(), at.size));
}

/// @param unlink_existing  Removes an existing socket at the path.
result<> bind_local(int fd, const local_endpoint& at, bool unlink_existing) noexcept {
    const auto name = to_native(at);
    auto bound = bind_to(fd, name);
    if (!bound && unlink_existing && bound.error() == std::errc::address_in_use &&
        unlink_socket(at)) {
        bound = bind_to(fd, name);
    }
    return bound;
}

result<> start_listening(int fd, int backlog) noexcept {
    SIMPLENET_EXPECTS(backlog >= 0, "a listener's backlog is not negative");
    return sys::to_result(sys::listen(fd, backlog));
}

bool is_connected_to_itself(int fd, const native_address& peer) noexcept {
    native_address own;
    own.size = sizeof own.storage;
    return sys::getsockname(fd, own.data(), own.size) == 0 && own.size == peer.size &&
           std::memcmp(&own.storage, &peer.storage, own.size) == 0;
}

/// Bounds how long connect() of an AF_UNIX socket waits for room in the backlog.
result<> set_send_timeout(int fd, std::chrono::nanoseconds limit) noexcept {
    using namespace std::chrono;
    // Rounded up, because {0, 0} means for ever.
    const auto rounded = std::max(ceil<microseconds>(limit), microseconds{limit.count() != 0});
    const auto whole = duration_cast<seconds>(rounded);
    const timeval value{.tv_sec = whole.count(), .tv_usec = (rounded - whole).count()};
    return sys::to_result(sys::set_option(fd, SOL_SOCKET, SO_SNDTIMEO, value));
}

} // namespace

std::optional<std::chrono::steady_clock::time_point>
deadline_after(std::optional<std::chrono::nanoseconds> timeout) noexcept {
    if (!timeout) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (*timeout > std::chrono::steady_clock::time_point::max() - now) return std::nullopt;
    return now + std::max(*timeout, std::chrono::nanoseconds::zero());
}

result<unique_fd> adopt_socket(unique_fd fd, socket_kind kind, sys::mode waiting) noexcept {
    const bool is_udp = kind == socket_kind::udp_socket;
    const bool is_datagram = is_udp || kind == socket_kind::local_datagram;
    const bool is_local = kind == socket_kind::local_stream ||
                          kind == socket_kind::local_listener ||
                          kind == socket_kind::local_datagram;
    const bool listens = kind == socket_kind::tcp_listener || kind == socket_kind::local_listener;

    int type = 0;
    int family = 0;
    int protocol = 0;
    int listening = 0;
    // Fails with ENOTSOCK or EBADF if the descriptor is not a socket or not open.
    for (const auto& [name, value] :
         {std::pair{SO_TYPE, &type}, std::pair{SO_DOMAIN, &family},
          std::pair{SO_PROTOCOL, &protocol}, std::pair{SO_ACCEPTCONN, &listening}}) {
        const int got = sys::get_option(fd.get(), SOL_SOCKET, name, *value);
        if (got < 0) return fail(sys::error_from(got));
    }

    // MPTCP behaves like TCP in everything used here, and some service managers pass such
    // listeners.
    const bool right_protocol =
        is_local ? family == AF_UNIX
                 : (family == AF_INET || family == AF_INET6) &&
                       (is_udp ? protocol == IPPROTO_UDP
                               : protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
    const bool right_type = type == (is_datagram ? SOCK_DGRAM : SOCK_STREAM);
    if (!right_protocol || !right_type || (listening != 0) != listens) {
        return fail(std::errc::invalid_argument);
    }

    if (auto set = sys::to_result(sys::set_close_on_exec(fd.get())); !set) return fail(set);
    if (auto set = sys::to_result(sys::set_mode(fd.get(), waiting)); !set) return fail(set);
    return fd;
}

result<unique_fd> open_tcp(const endpoint& peer, sys::mode waiting) noexcept {
    return open_socket(domain_of(peer.address()), SOCK_STREAM, waiting);
}

result<unique_fd> start_connect(const endpoint& peer) noexcept {
    auto fd = open_tcp(peer, sys::mode::nonblocking);
    if (!fd) return fd;

    const auto to = to_native(peer);
    const int outcome = sys::connect(fd->get(), to.data(), to.size);
    if (outcome < 0 && outcome != -EINPROGRESS && outcome != -EINTR) {
        return fail(sys::error_from(outcome));
    }
    return fd;
}

result<> connect_outcome(int fd) noexcept {
    if (auto error = sys::to_result(sys::pending_error(fd)); !error) return error;

    native_address peer;
    peer.size = sizeof peer.storage;
    if (auto named = sys::to_result(sys::getpeername(fd, peer.data(), peer.size)); !named)
        return named;
    if (is_connected_to_itself(fd, peer)) return fail(std::errc::connection_refused);
    return {};
}

result<> finish_connect(int fd) noexcept {
    const int ready = sys::poll(fd, POLLOUT, std::chrono::steady_clock::time_point{});
    if (ready < 0) return sys::to_result(ready);
    if (ready == 0) return fail(std::errc::operation_would_block);
    return connect_outcome(fd);
}

namespace {

/// Connects `fd` to `peer`, until the deadline.
result<> connect_to(const unique_fd& fd, const local_endpoint& peer, sys::mode waiting,
                    std::optional<std::chrono::steady_clock::time_point> deadline) noexcept {
    const auto to = to_native(peer);
    const bool limited = deadline && waiting == sys::mode::blocking;
    for (;;) {
        if (limited) {
            const auto left = std::max(*deadline - std::chrono::steady_clock::now(),
                                       std::chrono::steady_clock::duration{1});
            if (auto set = set_send_timeout(fd.get(), left); !set) return fail(set);
        }
        const int outcome = sys::connect(fd.get(), to.data(), to.size);
        if (outcome == 0) break;
        if (outcome == -EINTR) continue;
        if (outcome != -EAGAIN || !limited) return fail(sys::error_from(outcome));
        if (std::chrono::steady_clock::now() >= *deadline) return fail(errc::deadline_exceeded);
    }

    if (limited) return set_send_timeout(fd.get(), {});
    return {};
}

} // namespace

result<unique_fd>
connect_local(const local_endpoint& peer, sys::mode waiting,
              std::optional<std::chrono::steady_clock::time_point> deadline) noexcept {
    auto fd = open_socket(AF_UNIX, SOCK_STREAM, waiting);
    if (!fd) return fd;
    if (auto connected = connect_to(*fd, peer, waiting, deadline); !connected)
        return fail(connected);
    return fd;
}

result<local_connection> connect_local_for_bytes(const local_endpoint& peer) noexcept {
    auto fd = open_socket(AF_UNIX, SOCK_STREAM, sys::mode::nonblocking);
    if (!fd) return fail(fd);
    // Before connect(2), after which the peer can send some.
    const bool alone = sys::refuse_descriptors(fd->get());
    if (auto connected = connect_to(*fd, peer, sys::mode::nonblocking, std::nullopt); !connected)
        return fail(connected);
    return local_connection{*std::move(fd), alone};
}

result<> unlink_socket(const local_endpoint& at) noexcept {
    std::array<char, local_endpoint::max_name_size + 2> path{}; // followed by zeros: a C string
    std::ranges::copy(at.path(), path.begin());
    return sys::to_result(sys::unlink_socket(path.data()));
}

result<std::pair<unique_fd, unique_fd>> local_pair(int type, sys::mode waiting) noexcept {
    int fds[2];
    const int outcome = sys::socketpair(type, waiting, fds);
    if (outcome < 0) return fail(sys::error_from(outcome));
    return std::pair{unique_fd{fds[0]}, unique_fd{fds[1]}};
}

result<unique_fd> listen_on(const endpoint& at, const listen_options& options,
                            sys::mode waiting) noexcept {
    if (options.steer_by_cpu && !options.reuse_port) return fail(std::errc::invalid_argument);
    auto fd = open_tcp(at, waiting);
    if (!fd) return fd;

    if (auto ready = prepare_bind(fd->get(), at.address(), options.reuse_address,
                                  options.reuse_port, options.v6_only);
        !ready) {
        return fail(ready);
    }
    if (options.receive_buffer != 0) {
        if (auto set = options::set_receive_buffer(fd->get(), options.receive_buffer); !set) {
            return fail(set);
        }
    }
    if (options.send_buffer != 0) {
        if (auto set = options::set_send_buffer(fd->get(), options.send_buffer); !set) {
            return fail(set);
        }
    }
    if (auto bound = bind_to(fd->get(), to_native(at)); !bound) return fail(bound);
    // Can also fail with EADDRINUSE: with SO_REUSEADDR two sockets may bind, but not both listen.
    if (auto listening = start_listening(fd->get(), options.backlog); !listening) {
        return fail(listening);
    }
    if (options.steer_by_cpu) {
        if (auto steered = options::steer_by_cpu(fd->get(), 0); !steered) return fail(steered);
    }
    return fd;
}

result<unique_fd> listen_on(const local_endpoint& at, const local_listen_options& options,
                            sys::mode waiting) noexcept {
    auto fd = open_socket(AF_UNIX, SOCK_STREAM, waiting);
    if (!fd) return fd;

    if (auto bound = bind_local(fd->get(), at, options.unlink_existing); !bound) return fail(bound);
    if (auto listening = start_listening(fd->get(), options.backlog); !listening) {
        return fail(listening);
    }
    return fd;
}

result<unique_fd> accept_from(int listener, sys::mode waiting) noexcept {
    for (;;) {
        const int fd = sys::accept(listener, waiting);
        if (fd >= 0) return unique_fd{fd};
        if (!sys::is_error_of_the_connection(fd)) return fail(sys::error_from(fd));
    }
}

result<unique_fd> open_udp(const ip_address& address, const udp_options& options,
                           sys::mode waiting) noexcept {
    auto fd = open_socket(domain_of(address), SOCK_DGRAM, waiting);
    if (!fd) return fd;
    if (auto ready = prepare_bind(fd->get(), address, options.reuse_address, options.reuse_port,
                                  options.v6_only);
        !ready) {
        return fail(ready);
    }
    return fd;
}

result<unique_fd> bind_udp(const endpoint& at, const udp_options& options,
                           sys::mode waiting) noexcept {
    auto fd = open_udp(at.address(), options, waiting);
    if (!fd) return fd;
    if (auto bound = bind_to(fd->get(), to_native(at)); !bound) return fail(bound);
    return fd;
}

result<unique_fd> connect_udp(const endpoint& peer, sys::mode waiting) noexcept {
    auto fd = open_udp(peer.address(), {}, waiting);
    if (!fd) return fd;
    if (auto connected = datagrams::connect(fd->get(), peer); !connected) return fail(connected);
    return fd;
}

result<unique_fd> open_local_datagram(sys::mode waiting) noexcept {
    return open_socket(AF_UNIX, SOCK_DGRAM, waiting);
}

result<unique_fd> bind_local_datagram(const local_endpoint& at, const local_bind_options& options,
                                      sys::mode waiting) noexcept {
    auto fd = open_local_datagram(waiting);
    if (!fd) return fd;
    if (auto bound = bind_local(fd->get(), at, options.unlink_existing); !bound) return fail(bound);
    return fd;
}

result<unique_fd> connect_local_datagram(const local_endpoint& peer, sys::mode waiting) noexcept {
    auto fd = open_local_datagram(waiting);
    if (!fd) return fd;
    if (auto connected = datagrams::connect(fd->get(), peer); !connected) return fail(connected);
    return fd;
}

} // namespace simplenet::v0::detail
