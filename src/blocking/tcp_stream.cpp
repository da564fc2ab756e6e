#include <simplenet/blocking/tcp_stream.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/nonblocking/tcp_stream.hpp>

#include <utility>

#include <poll.h>

namespace simplenet::v0::blocking {

namespace sys = detail::sys;

result<tcp_stream> tcp_stream::connect(const endpoint& peer,
                                       std::optional<std::chrono::nanoseconds> timeout) noexcept {
    const auto deadline = detail::deadline_after(timeout);
    auto fd = detail::start_connect(peer);
    if (!fd) return fail(fd);

    const int ready = sys::poll(fd->get(), POLLOUT, deadline);
    if (ready < 0) return fail(sys::error_from(ready));
    if (ready == 0) return fail(errc::deadline_exceeded);
    if (auto connected = detail::connect_outcome(fd->get()); !connected) return fail(connected);

    const int set = sys::set_mode(fd->get(), sys::mode::blocking);
    if (set < 0) return fail(sys::error_from(set));
    return detail::make_socket<tcp_stream>(std::move(fd));
}

result<tcp_stream> tcp_stream::adopt(unique_fd fd) noexcept {
    return detail::make_socket<tcp_stream>(
        detail::adopt_socket(std::move(fd), detail::socket_kind::tcp_stream, sys::mode::blocking));
}

result<tcp_stream> tcp_stream::from(nonblocking::tcp_stream&& other) noexcept {
    const int error = detail::socket_access::read_error(other);
    auto made = adopt(std::move(other).release());
    if (made) detail::socket_access::expect_read_error(*made, error);
    return made;
}

} // namespace simplenet::v0::blocking
