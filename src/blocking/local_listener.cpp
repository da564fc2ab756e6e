#include <simplenet/blocking/local_listener.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/nonblocking/local_listener.hpp>

#include <utility>

namespace simplenet::v0::blocking {

namespace sys = detail::sys;

result<local_listener> local_listener::bind(const simplenet::local_endpoint& at,
                                            const local_listen_options& options) noexcept {
    return detail::make_socket<local_listener>(detail::listen_on(at, options, sys::mode::blocking));
}

result<local_stream> local_listener::accept() noexcept {
    return detail::make_socket<local_stream>(
        detail::accept_from(native_handle(), sys::mode::blocking));
}

result<local_listener> local_listener::adopt(unique_fd fd) noexcept {
    return detail::make_socket<local_listener>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::local_listener, sys::mode::blocking));
}

result<local_listener> local_listener::from(nonblocking::local_listener&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::blocking
