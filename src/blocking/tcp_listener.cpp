#include <simplenet/blocking/tcp_listener.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/nonblocking/tcp_listener.hpp>

#include <utility>

namespace simplenet::v0::blocking {

namespace sys = detail::sys;

result<tcp_listener> tcp_listener::bind(const endpoint& at,
                                        const listen_options& options) noexcept {
    return detail::make_socket<tcp_listener>(detail::listen_on(at, options, sys::mode::blocking));
}

result<tcp_stream> tcp_listener::accept() noexcept {
    return detail::make_socket<tcp_stream>(
        detail::accept_from(native_handle(), sys::mode::blocking));
}

result<tcp_listener> tcp_listener::adopt(unique_fd fd) noexcept {
    return detail::make_socket<tcp_listener>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::tcp_listener, sys::mode::blocking));
}

result<tcp_listener> tcp_listener::from(nonblocking::tcp_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::blocking
