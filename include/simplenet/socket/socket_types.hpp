#pragma once
// The base of each socket class: what its blocking and its nonblocking form have in common.
// Layer socket.

#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/descriptor_transfers.hpp>
#include <simplenet/socket/stream_socket.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

using tcp_stream_base = with_stream_transfers<with_ip_names<with_tcp_options<socket_handle>>>;
using tcp_listener_base = with_ip_names<with_tcp_options<socket_handle>>;
using udp_socket_base =
    with_datagram_transfers<with_udp_peer<with_ip_names<with_udp_options<socket_handle>>>>;
using local_socket_base = with_local_names<with_socket_options<socket_handle>>;

/// The common part of Unix domain streams.
class local_stream_base
    : public with_descriptor_transfers<with_stream_transfers<local_socket_base>> {
public:
    using with_descriptor_transfers::with_descriptor_transfers;

    /// The process that called `connect()` or, seen from there, `listen()`; for a pair, the one
    /// that made it.
    [[nodiscard]] result<process_credentials> peer_credentials() const noexcept {
        return names::unix_peer_credentials(native_handle());
    }
};

/// The common part of Unix domain listeners.
using local_listener_base = with_local_path<local_socket_base>;

using local_datagram_base = with_local_datagram_transfers<
    with_datagram_peer<with_local_path<local_socket_base>, simplenet::local_endpoint>>;

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
