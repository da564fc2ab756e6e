#include <simplenet/socket/socket_names.hpp>

#include "ip/native.hpp"
#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <algorithm>
#include <array>

namespace simplenet::v0::detail::names {

namespace {

using name_call = int (*)(int fd, sockaddr* name, socklen_t& size) noexcept;

/// The result of `call` for `fd`, parsed by `parse`.
template <class Parse>
auto ask(int fd, name_call call, Parse parse) noexcept -> decltype(parse(nullptr, 0)) {
    native_address name;
    name.size = sizeof name.storage;
    const int outcome = call(fd, name.data(), name.size);
    if (outcome < 0) return fail(sys::error_from(outcome));
    return parse(name.data(), name.size);
}

} // namespace

result<endpoint> ip_local(int fd) noexcept {
    return ask(fd, sys::getsockname, endpoint_from_native);
}
result<endpoint> ip_remote(int fd) noexcept {
    return ask(fd, sys::getpeername, endpoint_from_native);
}
result<endpoint> ip_accepted_from(int fd) noexcept {
    return ask(fd, sys::getpeername_of_accepted, endpoint_from_native);
}
result<local_endpoint> unix_local(int fd) noexcept {
    return ask(fd, sys::getsockname, local_endpoint_from_native);
}
result<local_endpoint> unix_remote(int fd) noexcept {
    return ask(fd, sys::getpeername, local_endpoint_from_native);
}

result<process_credentials> unix_peer_credentials(int fd) noexcept {
    ucred peer{};
    const int outcome = sys::get_option(fd, SOL_SOCKET, SO_PEERCRED, peer);
    if (outcome < 0) return fail(sys::error_from(outcome));
    return process_credentials{.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
}

result<> unlink_unix_path(int fd) noexcept {
    const auto at = unix_local(fd);
    if (!at) return fail(at);
    if (at->path().empty()) return {};
    return unlink_socket(*at);
}

} // namespace simplenet::v0::detail::names
