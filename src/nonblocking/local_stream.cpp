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
    return detail::make_pair_of<local_stream>(
        detail::local_pair(SOCK_STREAM, sys::mode::nonblocking));
}

result<local_stream> local_stream::adopt(unique_fd fd) noexcept {
    return detail::make_socket<local_stream>(detail::adopt_socket(
        std::move(fd), detail::socket_kind::local_stream, sys::mode::nonblocking));
}

result<local_stream> local_stream::from(blocking::local_stream&& other) noexcept {
    return adopt(std::move(other).release());
}

} // namespace simplenet::v0::nonblocking
