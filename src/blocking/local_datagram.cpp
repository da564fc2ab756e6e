#include <simplenet/blocking/local_datagram.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/nonblocking/local_datagram.hpp>

#include <utility>

namespace simplenet::v0::blocking {

namespace sys = detail::sys;

result<local_datagram> local_datagram::bind(const simplenet::local_endpoint& at,
                                            const local_bind_options& options) noexcept {
    return detail::make_socket<local_datagram>(
        detail::bind_local_datagram(at, options, sys::mode::blocking));
}

result<local_datagram> local_datagram::connect(const simplenet::local_endpoint& peer) noexcept {
    return detail::make_socket<local_datagram>(
        detail::connect_local_datagram(peer, sys::mode::blocking));
}

result<local_datagram> local_datagram::open() noexcept {
    return detail::make_socket<local_datagram>(detail::open_local_datagram(sys::mode::blocking));
}

result<std::pair<local_datagram, local_datagram>> local_datagram::pair() noexcept {
    auto fds = detail::local_pair(SOCK_DGRAM, sys::mode::blocking);
    if (!fds) return fail(fds);
    return std::pair{local_datagram{detail::known_socket{std::move(fds->first)}},
                     local_datagram{detail::known_socket{std::move(fds->second)}}};
}

result<local_datagram> local_datagram::adopt(unique_fd fd) noexcept {
    return detail::make_socket<local_datagram>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::local_datagram, sys::mode::blocking));
}

result<local_datagram> local_datagram::from(nonblocking::local_datagram&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::blocking
