#pragma once
// The options and reports of the servers. Layer server.

#include <simplenet/ip/endpoint.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// How the loops of a tcp_server accept connections.
enum class accept_mode : std::uint8_t {
    automatic,       ///< reuse_port if there are several loops.
    reuse_port,      ///< A listener for each loop; the kernel distributes the connections.
    single_acceptor, ///< The first loop accepts, and gives connections to the others.
};

/// Which loop gets a connection.
enum class balance : std::uint8_t {
    /// Each loop in turn. With accept_mode::reuse_port the loop that the kernel chose, if each loop
    /// has a listener.
    round_robin,
    /// The loop with the fewest connections. With accept_mode::reuse_port the loop that the kernel
    /// chose, unless it has clearly more than the others.
    least_connections,
};

/// What happens to connections beyond `max_connections`.
enum class when_full : std::uint8_t {
    wait,  ///< They wait in the backlog; nothing is accepted ahead.
    reset, ///< They are accepted and reset.
};

/// Whether connections begin with the PROXY protocol of HAProxy.
enum class proxy_protocol : std::uint8_t {
    none,
    required, ///< Version 1 or 2; a connection without it is reset.
};

/// How a tcp_server accepts and treats connections. What it points to is copied by listen() and
/// adopt().
struct server_options {
    accept_mode accept = accept_mode::automatic;
    // Qualified: here `balance` is also the name of the member.
    simplenet::balance balance = simplenet::balance::least_connections;
    /// Connections of the whole server; 0: as many as there are descriptors.
    std::size_t max_connections = 0;
    when_full full = when_full::wait;
    /// Set on every connection, see async_stream::set_idle_timeout(); 0: none.
    std::chrono::nanoseconds idle_timeout{0};
    /// TCP_NODELAY of every connection.
    bool no_delay = true;
    listen_options listen = {};
    /// If required, connection_info has the addresses that the proxy reports.
    proxy_protocol proxy = proxy_protocol::none;
    /// Addresses and prefixes ("10.0.0.0/8") that may speak the PROXY protocol; others are reset.
    /// Empty: all.
    std::span<const std::string_view> proxy_sources = {};
    /// A connection that has not sent its PROXY header within this time is reset.
    std::chrono::nanoseconds proxy_timeout = std::chrono::seconds{5};
    /// Called on the loop of a handler that has thrown, with `context`; must not throw. Null:
    /// loop_options::on_unhandled of that loop; if that is null too, a line on standard error, at
    /// most once a second.
    void (*on_handler_exception)(std::exception_ptr, void* context) = nullptr;
    void* context = nullptr;
};

/// How a local_server accepts and treats connections. As in server_options, but for the options of
/// TCP.
struct local_server_options {
    simplenet::balance balance = simplenet::balance::least_connections;
    std::size_t max_connections = 0; ///< Of the whole server; 0: as many as there are descriptors.
    when_full full = when_full::wait;
    std::chrono::nanoseconds idle_timeout{0}; ///< Set on every connection; 0: none.
    local_listen_options listen = {};
    /// As in server_options.
    void (*on_handler_exception)(std::exception_ptr, void* context) = nullptr;
    void* context = nullptr;
};

/// What a handler may want to know about its connection.
struct connection_info {
    /// The client, even if it has reset the connection already; behind a proxy that speaks the
    /// PROXY protocol, as that reports it. 0.0.0.0:0 of a local_server, and of such a reset where
    /// the kernel lacks SO_PEERNAME, as a sandbox may.
    endpoint peer;
    /// The address to which the client connected, likewise.
    endpoint local;
    /// Unique within the server, in the order of accepting, from 1.
    std::uint64_t number = 0;
    /// The addresses are those that a proxy reported.
    bool proxied = false;
    /// Of a local_server: the process that connected (SO_PEERCRED, unix(7)).
    process_credentials credentials = {};
};

/// How the connections of a server ended that were open when its shutdown began.
struct shutdown_report {
    std::size_t drained = 0; ///< By themselves, within the grace.
    std::size_t cut = 0;     ///< Stopped after it.
};

/// What a server has done since it began, and what it holds. At rest `accepted` is `refused` +
/// `ended` + `open`.
struct server_statistics {
    std::uint64_t accepted = 0; ///< Connections that were taken from the backlog.
    std::uint64_t refused = 0;  ///< Reset because the server was full, or without a PROXY header.
    std::uint64_t ended = 0;    ///< Connections whose handler has ended.
    /// Of these, handlers that threw or returned an error; not those that were stopped, and then
    /// returned an error or threw operation_canceled.
    std::uint64_t failed = 0;
    std::size_t open = 0; ///< Connections whose handler, or PROXY header, has not ended.
    std::vector<std::size_t> open_by_loop; ///< The same, for each loop of the group.
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
