// What is the same in every layer of sockets, made for this one. Layer nonblocking.

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
consteval sys::mode mode_of<nonblocking::local_datagram>() {
    return sys::mode::nonblocking;
}
template <>
consteval sys::mode mode_of<nonblocking::local_listener>() {
    return sys::mode::nonblocking;
}
template <>
consteval sys::mode mode_of<nonblocking::tcp_listener>() {
    return sys::mode::nonblocking;
}
template <>
consteval sys::mode mode_of<nonblocking::udp_socket>() {
    return sys::mode::nonblocking;
}

} // namespace detail

template class basic_local_datagram<nonblocking::local_datagram>;
template class basic_local_listener<nonblocking::local_listener, nonblocking::local_stream>;
template class basic_tcp_listener<nonblocking::tcp_listener, nonblocking::tcp_stream>;
template class basic_udp_socket<nonblocking::udp_socket>;

namespace nonblocking {

result<local_datagram> local_datagram::from(blocking::local_datagram&& other) noexcept {
    return adopt(std::move(other).release());
}

result<local_listener> local_listener::from(blocking::local_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

result<tcp_listener> tcp_listener::from(blocking::tcp_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

result<udp_socket> udp_socket::from(blocking::udp_socket&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace nonblocking
} // namespace simplenet::v0
