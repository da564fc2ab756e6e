#include <simplenet/socket/datagram_socket.hpp>

#include "ip/native.hpp"
#include "sys/calls.hpp"
#include <simplenet/core/contract.hpp>

#include <algorithm>

namespace simplenet::detail::datagrams {

result<std::size_t> send_to(int fd, const_buffer from, const endpoint& to) noexcept {
    const auto name = to_native(to);
    return sys::to_count(sys::sendto(fd, from.data(), from.size(), 0, name.data(), name.size));
}

result<std::size_t> send(int fd, const_buffer from) noexcept {
    return sys::to_count(sys::send(fd, from.data(), from.size()));
}

result<udp_datagram> receive_from(int fd, mutable_buffer into) noexcept {
    SIMPLENET_EXPECTS(!into.empty(), "receiving into an empty buffer loses the datagram");
    native_address name;
    name.size = sizeof name.storage;
    // MSG_TRUNC: the outcome is the length of the datagram, which tells what the buffer cut off.
    const auto size = sys::to_count(
        sys::recvfrom(fd, into.data(), into.size(), MSG_TRUNC, name.data(), name.size));
    if (!size) return fail(size);
    const auto from = endpoint_from_native(name.data(), name.size);
    if (!from) return fail(from);
    return udp_datagram{
        .size = std::min(*size, into.size()), .from = *from, .truncated = *size > into.size()};
}

result<> connect(int fd, const endpoint& peer) noexcept {
    const auto name = to_native(peer);
    return sys::to_result(sys::connect(fd, name.data(), name.size));
}

result<> disconnect(int fd) noexcept {
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC; // connect(2): dissolves the association
    return sys::to_result(sys::connect(fd, &nobody, sizeof nobody));
}

} // namespace simplenet::detail::datagrams
