#include <simplenet/blocking/udp_socket.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/nonblocking/udp_socket.hpp>

#include <utility>

namespace simplenet::v0::blocking {

namespace sys = detail::sys;

result<udp_socket> udp_socket::bind(const endpoint& at, const udp_options& options) noexcept {
    return detail::make_socket<udp_socket>(detail::bind_udp(at, options, sys::mode::blocking));
}

result<udp_socket> udp_socket::connect(const endpoint& peer) noexcept {
    return detail::make_socket<udp_socket>(detail::connect_udp(peer, sys::mode::blocking));
}

result<udp_socket> udp_socket::open_v4() noexcept {
    return detail::make_socket<udp_socket>(
        detail::open_udp(ip_address::any_v4(), {}, sys::mode::blocking));
}

result<udp_socket> udp_socket::open_v6() noexcept {
    return detail::make_socket<udp_socket>(
        detail::open_udp(ip_address::any_v6(), {}, sys::mode::blocking));
}

result<udp_socket> udp_socket::adopt(unique_fd fd) noexcept {
    return detail::make_socket<udp_socket>(
        detail::adopt_socket(std::move(fd), detail::socket_kind::udp_socket, sys::mode::blocking));
}

result<udp_socket> udp_socket::from(nonblocking::udp_socket&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::blocking
