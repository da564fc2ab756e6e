#include <simplenet/socket/detail/option_calls.hpp>

#include "ip/native.hpp"
#include "sys/calls.hpp"
#include <simplenet/ip/endpoint.hpp>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>

namespace simplenet::v0::detail::options {

namespace {

result<> set_int(int fd, int level, int name, int value) noexcept {
    return sys::to_result(sys::set_option(fd, level, name, value));
}

result<int> get_int(int fd, int level, int name) noexcept {
    int value = 0;
    const int outcome = sys::get_option(fd, level, name, value);
    if (outcome < 0) return fail(sys::error_from(outcome));
    return value;
}

result<bool> get_bool(int fd, int level, int name) noexcept {
    auto value = get_int(fd, level, name);
    if (!value) return fail(value);
    return *value != 0;
}

result<std::size_t> get_size(int fd, int name) noexcept {
    auto value = get_int(fd, SOL_SOCKET, name);
    if (!value) return fail(value);
    return static_cast<std::size_t>(*value);
}

result<> set_size(int fd, int name, std::size_t bytes) noexcept {
    const auto most = static_cast<std::size_t>(INT_MAX);
    return set_int(fd, SOL_SOCKET, name, static_cast<int>(std::min(bytes, most)));
}

/// A count of `Unit` as the int that the kernel expects; invalid_argument if it does not fit.
template <class Unit>
result<int> count_of(Unit duration) noexcept {
    if (duration.count() < 0 || duration.count() > INT_MAX) {
        return fail(std::errc::invalid_argument);
    }
    return static_cast<int>(duration.count());
}

result<bool> is_v6(int fd) noexcept {
    auto family = get_int(fd, SOL_SOCKET, SO_DOMAIN);
    if (!family) return fail(family);
    return *family == AF_INET6;
}

/// Multicast settings exist separately for each protocol. An IPv6 socket may use both protocols, so
/// both are set, and the getter reports that of IPv6.
result<> set_multicast(int fd, int v4_name, int v6_name, int value) noexcept {
    auto v6 = is_v6(fd);
    if (!v6) return fail(v6);
    if (*v6) {
        if (auto set = set_int(fd, IPPROTO_IPV6, v6_name, value); !set) return set;
    }
    return set_int(fd, IPPROTO_IP, v4_name, value);
}

result<int> get_multicast(int fd, int v4_name, int v6_name) noexcept {
    auto v6 = is_v6(fd);
    if (!v6) return fail(v6);
    return *v6 ? get_int(fd, IPPROTO_IPV6, v6_name) : get_int(fd, IPPROTO_IP, v4_name);
}

result<> change_membership(int fd, int name, const ip_address& group, unsigned interface) noexcept {
    const auto native = to_native(endpoint{group, 0});
    group_req request{};
    request.gr_interface = interface != 0 ? interface : group.scope_id();
    std::memcpy(&request.gr_group, &native.storage, native.size);
    return sys::to_result(
        sys::set_option(fd, group.is_v4() ? IPPROTO_IP : IPPROTO_IPV6, name, request));
}

/// A flag that exists separately for each protocol, on a socket that may use both.
result<> set_for_both(int fd, int v4_name, int v6_name, bool on) noexcept {
    auto v6 = is_v6(fd);
    if (!v6) return fail(v6);
    if (*v6) {
        if (auto set = set_int(fd, IPPROTO_IPV6, v6_name, on); !set) return set;
    }
    return set_int(fd, IPPROTO_IP, v4_name, on);
}

/// Changes the two low bits of a traffic class.
result<> set_mark(int fd, int level, int name, ecn mark) noexcept {
    auto before = get_int(fd, level, name);
    if (!before) return fail(before);
    return set_int(fd, level, name, (*before & ~3) | static_cast<int>(mark));
}

} // namespace

result<> set_receive_buffer(int fd, std::size_t bytes) noexcept {
    return set_size(fd, SO_RCVBUF, bytes);
}
result<std::size_t> receive_buffer(int fd) noexcept {
    return get_size(fd, SO_RCVBUF);
}
result<> set_send_buffer(int fd, std::size_t bytes) noexcept {
    return set_size(fd, SO_SNDBUF, bytes);
}
result<std::size_t> send_buffer(int fd) noexcept {
    return get_size(fd, SO_SNDBUF);
}
result<> set_reuse_address(int fd, bool on) noexcept {
    return set_int(fd, SOL_SOCKET, SO_REUSEADDR, on);
}
result<bool> reuse_address(int fd) noexcept {
    return get_bool(fd, SOL_SOCKET, SO_REUSEADDR);
}
result<> set_reuse_port(int fd, bool on) noexcept {
    return set_int(fd, SOL_SOCKET, SO_REUSEPORT, on);
}
result<> steer_by_cpu(int fd, unsigned listeners) noexcept {
    // The number of the listener is what the program returns.
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_CPU)},
        {BPF_ALU | BPF_MOD | BPF_K, 0, 0, listeners != 0 ? listeners : UINT32_MAX},
        {BPF_RET | BPF_A, 0, 0, 0},
    };
    const sock_fprog attached{.len = std::size(program), .filter = program};
    return sys::to_result(sys::set_option(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, attached));
}
result<bool> reuse_port(int fd) noexcept {
    return get_bool(fd, SOL_SOCKET, SO_REUSEPORT);
}

result<> set_no_delay(int fd, bool on) noexcept {
    return set_int(fd, IPPROTO_TCP, TCP_NODELAY, on);
}
result<bool> no_delay(int fd) noexcept {
    return get_bool(fd, IPPROTO_TCP, TCP_NODELAY);
}

result<> set_keep_alive(int fd, bool on) noexcept {
    return set_int(fd, SOL_SOCKET, SO_KEEPALIVE, on);
}

result<> set_keep_alive(int fd, const keep_alive_options& timing) noexcept {
    const auto idle = count_of(timing.idle);
    if (!idle) return fail(idle);
    const auto interval = count_of(timing.interval);
    if (!interval) return fail(interval);

    // The timing first, so that probes never start with a part of it.
    if (auto set = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, *idle); !set) return set;
    if (auto set = set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, *interval); !set) return set;
    if (auto set = set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, timing.count); !set) return set;
    return set_keep_alive(fd, true);
}

result<bool> keep_alive(int fd) noexcept {
    return get_bool(fd, SOL_SOCKET, SO_KEEPALIVE);
}

result<keep_alive_options> keep_alive_timing(int fd) noexcept {
    const auto idle = get_int(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    if (!idle) return fail(idle);
    const auto interval = get_int(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    if (!interval) return fail(interval);
    const auto count = get_int(fd, IPPROTO_TCP, TCP_KEEPCNT);
    if (!count) return fail(count);
    return keep_alive_options{.idle = std::chrono::seconds{*idle},
                              .interval = std::chrono::seconds{*interval},
                              .count = *count};
}

result<> set_user_timeout(int fd, std::chrono::milliseconds limit) noexcept {
    const auto count = count_of(limit);
    if (!count) return fail(count);
    return set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, *count);
}

result<std::chrono::milliseconds> user_timeout(int fd) noexcept {
    const auto count = get_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    if (!count) return fail(count);
    return std::chrono::milliseconds{*count};
}

result<> set_linger(int fd, std::optional<std::chrono::seconds> limit) noexcept {
    const auto count = count_of(limit.value_or(std::chrono::seconds{0}));
    if (!count) return fail(count);
    const struct linger value{.l_onoff = limit.has_value(), .l_linger = *count};
    return sys::to_result(sys::set_option(fd, SOL_SOCKET, SO_LINGER, value));
}

result<std::optional<std::chrono::seconds>> linger(int fd) noexcept {
    struct linger value{};
    const int outcome = sys::get_option(fd, SOL_SOCKET, SO_LINGER, value);
    if (outcome < 0) return fail(sys::error_from(outcome));
    if (value.l_onoff == 0) return std::nullopt;
    return std::chrono::seconds{value.l_linger};
}

result<> set_broadcast(int fd, bool on) noexcept {
    return set_int(fd, SOL_SOCKET, SO_BROADCAST, on);
}
result<bool> broadcast(int fd) noexcept {
    return get_bool(fd, SOL_SOCKET, SO_BROADCAST);
}

result<> join_group(int fd, const ip_address& group, unsigned interface) noexcept {
    return change_membership(fd, MCAST_JOIN_GROUP, group, interface);
}
result<> leave_group(int fd, const ip_address& group, unsigned interface) noexcept {
    return change_membership(fd, MCAST_LEAVE_GROUP, group, interface);
}

result<> set_multicast_loopback(int fd, bool on) noexcept {
    return set_multicast(fd, IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, on);
}
result<bool> multicast_loopback(int fd) noexcept {
    const auto value = get_multicast(fd, IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP);
    if (!value) return fail(value);
    return *value != 0;
}

result<> set_multicast_hops(int fd, int hops) noexcept {
    // The kernel accepts -1 for "the default", which the documentation excludes.
    if (hops < 0) return fail(std::errc::invalid_argument);
    return set_multicast(fd, IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, hops);
}
result<int> multicast_hops(int fd) noexcept {
    return get_multicast(fd, IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS);
}

result<> set_multicast_interface(int fd, unsigned interface) noexcept {
    auto v6 = is_v6(fd);
    if (!v6) return fail(v6);
    if (*v6) {
        const int index = static_cast<int>(interface);
        if (auto set = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, index); !set) return set;
    }
    ip_mreqn request{};
    request.imr_ifindex = static_cast<int>(interface);
    return sys::to_result(sys::set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, request));
}

result<> enable_gro(int fd, bool on) noexcept {
    return set_int(fd, IPPROTO_UDP, UDP_GRO, on);
}
result<> set_receive_packet_info(int fd, bool on) noexcept {
    return set_for_both(fd, IP_PKTINFO, IPV6_RECVPKTINFO, on);
}
result<> set_receive_ecn(int fd, bool on) noexcept {
    return set_for_both(fd, IP_RECVTOS, IPV6_RECVTCLASS, on);
}
result<> set_receive_errors(int fd, bool on) noexcept {
    return set_for_both(fd, IP_RECVERR, IPV6_RECVERR, on);
}

result<> set_ecn(int fd, ecn mark) noexcept {
    auto v6 = is_v6(fd);
    if (!v6) return fail(v6);
    if (*v6) {
        if (auto set = set_mark(fd, IPPROTO_IPV6, IPV6_TCLASS, mark); !set) return set;
    }
    return set_mark(fd, IPPROTO_IP, IP_TOS, mark);
}

} // namespace simplenet::v0::detail::options
