#pragma once
// async_connect: client connections. Layer net.

#include <simplenet/coro/task.hpp>
#include <simplenet/ip/address_family.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// What async_connect() tried, for people to read and programs to count.
struct connect_report {
    /// A connection to one address, made or given up.
    struct attempt {
        endpoint to;
        /// None if it is the connection; operation_canceled if another one won, or a stop came.
        std::error_code error;
        std::chrono::nanoseconds started{}; // since the call
        std::chrono::nanoseconds ended{};
    };
    std::vector<attempt> attempts; // in the order of their starts
    std::error_code lookup_v6;     // why there is no IPv6 address, if it was looked up
    std::error_code lookup_v4;
};

/// How a connection is made.
struct connect_options {
    /// Sends small writes at once (TCP_NODELAY, tcp(7)).
    bool no_delay = false;
    /// Where to connect from; a port of 0 is a free one. A name is then looked up in its family
    /// only. Two attempts cannot share another port: the later one fails with address_in_use.
    std::optional<endpoint> from = std::nullopt;
    /// For everything, the lookup included; then errc::deadline_exceeded. None: as long as it
    /// takes, which is about two minutes for an address that does not answer (tcp_syn_retries,
    /// tcp(7)).
    std::optional<std::chrono::nanoseconds> timeout = std::nullopt;

    // For names, which may have many addresses; RFC 8305 has the defaults.

    /// Of which family.
    address_family family = address_family::any;
    /// Between the starts of two attempts, if the earlier one has not failed: 10 ms to 2 s, and cut
    /// to that (section 5).
    std::chrono::nanoseconds attempt_delay = std::chrono::milliseconds{250};
    /// How long IPv4's answer waits for IPv6's: up to 2 s (section 3).
    std::chrono::nanoseconds resolution_delay = std::chrono::milliseconds{50};

    /// Filled during the call, however it ends. Borrowed until the await returns.
    // Here and not in the result, whose type with_timeout() and everybody else knows; and so the
    // story is not lost when a deadline ends it.
    connect_report* report = nullptr;
};

/// Connects to `to`.
///
/// @par Errors
/// - `std::errc::connection_refused`: nobody listens there; also when TCP connected the socket to
///   itself, which it can on a port of the ephemeral range.
/// - `std::errc::network_unreachable`, `std::errc::host_unreachable`, `std::errc::timed_out`: TCP
///   found no way, or no answer.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - `std::errc::too_many_files_open`, `std::errc::address_not_available`: no descriptor, no port.
/// - Anything else socket(2), bind(2) and connect(2) report.
/// @par Cancellation
/// The attempt ends and its socket is closed.
/// @par Example
/// @snippet connect_with_timeout.cpp connect
[[nodiscard]] task<result<tcp_stream>> async_connect(endpoint to, connect_options options = {});

/// Connects to `host`, a name or an address, by Happy Eyeballs (RFC 8305).
///
/// IPv6 and IPv4 are looked up at the same time, as async_resolve() does. Addresses are tried in
/// turn, IPv6 first and then alternating, each a little after the one before or as soon as that has
/// failed; the first that answers is the connection. The other attempts are then stopped, and
/// joined before this returns. If IPv4's addresses are known first, IPv6 gets a moment to answer.
/// At most 32 addresses are tried.
///
/// @param host  Copied. What async_resolve() takes.
/// @return The first connection. A server may see others that end without a byte: a connection can
///         be made in the moment in which it is given up.
///
/// @par Errors
/// `connect_options::report` has what every attempt said.
/// - Of the last attempt that failed, as above; one that had no way to the other side (such as
///   `std::errc::network_unreachable`) only if none had.
/// - Without any address: as async_resolve().
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// @par Cancellation
/// Every attempt ends and its socket is closed; lookups are left behind, as async_resolve() says.
/// @par Cost
/// Allocates for the name and for each attempt; one descriptor for each attempt under way.
/// @par Example
/// @snippet docs/snippets/resolving.cpp connect
[[nodiscard]] task<result<tcp_stream>> async_connect(std::string_view host, std::uint16_t port,
                                                     connect_options options = {});

/// Connects to a Unix domain listener. While its backlog is full, which nothing can wait for, it
/// tries again after 1 ms and then more and more, up to 50 ms.
///
/// @par Errors
/// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: nobody listens.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - Anything else socket(2) and connect(2) report.
[[nodiscard]] task<result<local_stream>> async_connect(local_endpoint to);

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
