#include <simplenet/nonblocking/tcp_stream.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/blocking/tcp_stream.hpp>

#include <utility>

namespace simplenet::v0::nonblocking {

namespace sys = detail::sys;

result<tcp_stream> tcp_stream::connect(const endpoint& peer) noexcept {
    return detail::make_socket<tcp_stream>(detail::start_connect(peer));
}

result<> tcp_stream::finish_connect() noexcept {
    return detail::finish_connect(native_handle());
}

result<tcp_stream> tcp_stream::adopt(unique_fd fd) noexcept {
    return detail::make_socket<tcp_stream>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::tcp_stream, sys::mode::nonblocking));
}

result<tcp_stream> tcp_stream::from(blocking::tcp_stream&& other) noexcept {
    const int error = detail::socket_access::read_error(other);
    auto made = adopt(std::move(other).release());
    if (made) detail::socket_access::expect_read_error(*made, error);
    return made;
}

} // namespace simplenet::v0::nonblocking
