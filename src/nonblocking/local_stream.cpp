#include <simplenet/nonblocking/local_stream.hpp>

#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/blocking/local_stream.hpp>

#include <utility>

namespace simplenet::v0::nonblocking {

namespace sys = detail::sys;

result<local_stream> local_stream::connect(const simplenet::local_endpoint& peer) noexcept {
    return detail::make_socket<local_stream>(
        detail::connect_local(peer, sys::mode::nonblocking, std::nullopt));
}

result<std::pair<local_stream, local_stream>> local_stream::pair() noexcept {
    auto fds = detail::local_pair(SOCK_STREAM, sys::mode::nonblocking);
    if (!fds) return fail(fds);
    return std::pair{local_stream{detail::known_socket{std::move(fds->first)}},
                     local_stream{detail::known_socket{std::move(fds->second)}}};
}

result<local_stream> local_stream::adopt(unique_fd fd) noexcept {
    return detail::make_socket<local_stream>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::local_stream, sys::mode::nonblocking));
}

result<local_stream> local_stream::from(blocking::local_stream&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::nonblocking
