// What is the same in every layer of sockets, made for this one. Layer blocking.

#include "socket/basic_sockets.hpp"

#include <simplenet/blocking/local_datagram.hpp>
#include <simplenet/blocking/local_listener.hpp>
#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/blocking/udp_socket.hpp>
#include <simplenet/nonblocking/local_datagram.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/nonblocking/udp_socket.hpp>

#include <utility>

namespace simplenet::v0 {

namespace detail {

template <>
consteval sys::mode mode_of<blocking::local_datagram>() {
    return sys::mode::blocking;
}
template <>
consteval sys::mode mode_of<blocking::local_listener>() {
    return sys::mode::blocking;
}
template <>
consteval sys::mode mode_of<blocking::tcp_listener>() {
    return sys::mode::blocking;
}
template <>
consteval sys::mode mode_of<blocking::udp_socket>() {
    return sys::mode::blocking;
}

} // namespace detail

template class basic_local_datagram<blocking::local_datagram>;
template class basic_local_listener<blocking::local_listener, blocking::local_stream>;
template class basic_tcp_listener<blocking::tcp_listener, blocking::tcp_stream>;
template class basic_udp_socket<blocking::udp_socket>;

namespace blocking {

result<local_datagram> local_datagram::from(nonblocking::local_datagram&& other) noexcept {
    return adopt(std::move(other).release());
}

result<local_listener> local_listener::from(nonblocking::local_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

result<tcp_listener> tcp_listener::from(nonblocking::tcp_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

result<udp_socket> udp_socket::from(nonblocking::udp_socket&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace blocking
} // namespace simplenet::v0
