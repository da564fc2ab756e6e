#include <simplenet/nonblocking/tcp_listener.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/blocking/tcp_listener.hpp>

#include <utility>

namespace simplenet::v0::nonblocking {

namespace sys = detail::sys;

result<tcp_listener> tcp_listener::bind(const endpoint& at,
                                        const listen_options& options) noexcept {
    return detail::make_socket<tcp_listener>(
        detail::listen_on(at, options, sys::mode::nonblocking));
}

result<tcp_stream> tcp_listener::accept() noexcept {
    return detail::make_socket<tcp_stream>(
        detail::accept_from(native_handle(), sys::mode::nonblocking));
}

result<tcp_listener> tcp_listener::adopt(unique_fd fd) noexcept {
    return detail::make_socket<tcp_listener>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::tcp_listener, sys::mode::nonblocking));
}

result<tcp_listener> tcp_listener::from(blocking::tcp_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::nonblocking
