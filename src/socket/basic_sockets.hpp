#pragma once
// Member definitions of the classes that the blocking and nonblocking layers share: each layer
// instantiates them for its own classes and mode. Layer socket, private.

#include "socket/datagrams.hpp"
#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/socket/basic_local_datagram.hpp>
#include <simplenet/socket/basic_local_listener.hpp>
#include <simplenet/socket/basic_tcp_listener.hpp>
#include <simplenet/socket/basic_udp_socket.hpp>

#include <utility>

namespace simplenet::v0 {

namespace detail {

/// Whether calls on the descriptor of a `Socket` block.
template <class Socket>
consteval sys::mode mode_of();

} // namespace detail

// --- basic_tcp_listener --------------------------------------------------------------------------

template <class Self, class Stream>
result<Self> basic_tcp_listener<Self, Stream>::bind(const endpoint& at,
                                                    const listen_options& options) noexcept {
    return detail::make_socket<Self>(detail::listen_on(at, options, detail::mode_of<Self>()));
}

template <class Self, class Stream>
result<Stream> basic_tcp_listener<Self, Stream>::accept() noexcept {
    return detail::make_socket<Stream>(
        detail::accept_from(native_handle(), detail::mode_of<Self>()));
}

template <class Self, class Stream>
result<Self> basic_tcp_listener<Self, Stream>::adopt(unique_fd fd) noexcept {
    return detail::make_socket<Self>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::tcp_listener, detail::mode_of<Self>()));
}

// --- basic_local_listener ------------------------------------------------------------------------

template <class Self, class Stream>
result<Self>
basic_local_listener<Self, Stream>::bind(const simplenet::local_endpoint& at,
                                         const local_listen_options& options) noexcept {
    return detail::make_socket<Self>(detail::listen_on(at, options, detail::mode_of<Self>()));
}

template <class Self, class Stream>
result<Stream> basic_local_listener<Self, Stream>::accept() noexcept {
    return detail::make_socket<Stream>(
        detail::accept_from(native_handle(), detail::mode_of<Self>()));
}

template <class Self, class Stream>
result<Self> basic_local_listener<Self, Stream>::adopt(unique_fd fd) noexcept {
    return detail::make_socket<Self>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::local_listener, detail::mode_of<Self>()));
}

// --- basic_udp_socket ----------------------------------------------------------------------------

template <class Self>
result<Self> basic_udp_socket<Self>::bind(const endpoint& at, const udp_options& options) noexcept {
    return detail::make_socket<Self>(detail::bind_udp(at, options, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_udp_socket<Self>::connect(const endpoint& peer) noexcept {
    return detail::make_socket<Self>(detail::connect_udp(peer, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_udp_socket<Self>::open_v4() noexcept {
    return detail::make_socket<Self>(
        detail::open_udp(ip_address::any_v4(), {}, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_udp_socket<Self>::open_v6() noexcept {
    return detail::make_socket<Self>(
        detail::open_udp(ip_address::any_v6(), {}, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_udp_socket<Self>::adopt(unique_fd fd) noexcept {
    return detail::make_socket<Self>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::udp_socket, detail::mode_of<Self>()));
}

template <class Self>
result<std::size_t> basic_udp_socket<Self>::send_to(const_buffer from, const endpoint& to,
                                                    const udp_send_options& options) noexcept {
    return detail::sys::to_count(detail::datagrams::send_one(native_handle(), from, &to, options));
}

template <class Self>
result<std::size_t> basic_udp_socket<Self>::send(const_buffer from,
                                                 const udp_send_options& options) noexcept {
    return detail::sys::to_count(
        detail::datagrams::send_one(native_handle(), from, nullptr, options));
}

template <class Self>
transfer_result
basic_udp_socket<Self>::send_batch(std::span<const outgoing_datagram> from) noexcept {
    return detail::datagrams::send_batch(native_handle(), from, limit_);
}

template <class Self>
result<udp_datagram> basic_udp_socket<Self>::receive_from(mutable_buffer into) noexcept {
    return detail::datagrams::receive_from(native_handle(), into);
}

template <class Self>
result<udp_datagram> basic_udp_socket<Self>::receive(mutable_buffer into) noexcept {
    return detail::datagrams::receive_from(native_handle(), into);
}

template <class Self>
result<std::size_t>
basic_udp_socket<Self>::receive_batch(std::span<incoming_datagram> into) noexcept {
    return detail::sys::to_count(detail::datagrams::receive_some(native_handle(), into));
}

template <class Self>
transfer_result basic_udp_socket<Self>::send_segmented(const_buffer from, std::size_t segment_size,
                                                       const endpoint& to,
                                                       const udp_send_options& options) noexcept {
    return detail::datagrams::send_segmented(native_handle(), from, segment_size, &to, options,
                                             limit_);
}

template <class Self>
transfer_result basic_udp_socket<Self>::send_segmented(const_buffer from, std::size_t segment_size,
                                                       const udp_send_options& options) noexcept {
    return detail::datagrams::send_segmented(native_handle(), from, segment_size, nullptr, options,
                                             limit_);
}

// --- basic_local_datagram ------------------------------------------------------------------------

template <class Self>
result<Self> basic_local_datagram<Self>::bind(const simplenet::local_endpoint& at,
                                              const local_bind_options& options) noexcept {
    return detail::make_socket<Self>(
        detail::bind_local_datagram(at, options, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_local_datagram<Self>::connect(const simplenet::local_endpoint& peer) noexcept {
    return detail::make_socket<Self>(detail::connect_local_datagram(peer, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_local_datagram<Self>::open() noexcept {
    return detail::make_socket<Self>(detail::open_local_datagram(detail::mode_of<Self>()));
}

template <class Self>
result<std::pair<Self, Self>> basic_local_datagram<Self>::pair() noexcept {
    return detail::make_pair_of<Self>(detail::local_pair(SOCK_DGRAM, detail::mode_of<Self>()));
}

template <class Self>
result<Self> basic_local_datagram<Self>::adopt(unique_fd fd) noexcept {
    return detail::make_socket<Self>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::local_datagram, detail::mode_of<Self>()));
}

template <class Self>
result<std::size_t>
basic_local_datagram<Self>::send_to(const_buffer from,
                                    const simplenet::local_endpoint& to) noexcept {
    return detail::sys::to_count(detail::datagrams::send_one(native_handle(), from, &to));
}

template <class Self>
result<std::size_t> basic_local_datagram<Self>::send(const_buffer from) noexcept {
    return detail::sys::to_count(detail::datagrams::send_one(native_handle(), from, nullptr));
}

template <class Self>
transfer_result
basic_local_datagram<Self>::send_batch(std::span<const outgoing_message> from) noexcept {
    return detail::datagrams::send_batch(native_handle(), from);
}

template <class Self>
result<local_message> basic_local_datagram<Self>::receive_from(mutable_buffer into) noexcept {
    return detail::datagrams::receive_message(native_handle(), into);
}

template <class Self>
result<local_message> basic_local_datagram<Self>::receive(mutable_buffer into) noexcept {
    return detail::datagrams::receive_message(native_handle(), into);
}

template <class Self>
result<std::size_t>
basic_local_datagram<Self>::receive_batch(std::span<incoming_message> into) noexcept {
    return detail::sys::to_count(detail::datagrams::receive_some(native_handle(), into));
}

} // namespace simplenet::v0
