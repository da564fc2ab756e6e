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

/// The attempts that async_connect() made, for logs and statistics.
struct connect_report {
    /// An attempt to connect to one address.
    struct attempt {
        endpoint to;
        /// None if it succeeded; operation_canceled if another one won or a stop came.
        std::error_code error;
        std::chrono::nanoseconds started{}; // since the call
        std::chrono::nanoseconds ended{};
    };
    std::vector<attempt> attempts; // in the order of their starts
    std::error_code lookup_v6;     // why there is no IPv6 address, if it was looked up
    std::error_code lookup_v4;
};

/// How async_connect() connects.
struct connect_options {
    /// Sends small writes at once (TCP_NODELAY, tcp(7)).
    bool no_delay = false;
    /// The local address; port 0 chooses a free port. A name is then looked up only in the family
    /// of this address. Two attempts cannot share another port: the later one fails with
    /// address_in_use.
    std::optional<endpoint> from = std::nullopt;
    /// For everything, including the lookup; then errc::deadline_exceeded. None: no limit; an
    /// address that does not answer takes about two minutes (tcp_syn_retries, tcp(7)).
    std::optional<std::chrono::nanoseconds> timeout = std::nullopt;

    // For names, which may have many addresses; RFC 8305 has the defaults.

    /// The family of addresses to try.
    address_family family = address_family::any;
    /// Between the starts of two attempts, if the earlier one has not failed. Values below 10 ms or
    /// above 2 s are adjusted to these limits (section 5).
    std::chrono::nanoseconds attempt_delay = std::chrono::milliseconds{250};
    /// How long to wait for the IPv6 addresses once the IPv4 addresses are known: up to 2 s
    /// (section 3).
    std::chrono::nanoseconds resolution_delay = std::chrono::milliseconds{50};

    /// Filled during the call, however it ends. Borrowed until the await returns.
    // Not part of the result: with_timeout() and others know the type of the result, and a report
    // in it would be lost when a deadline ends the call.
    connect_report* report = nullptr;
};

/// Connects to `to`.
///
/// @par Errors
/// - `std::errc::connection_refused`: nobody listens there. Also if TCP connected the socket to
///   itself, which can happen on a port of the ephemeral range.
/// - `std::errc::network_unreachable`, `std::errc::host_unreachable`, `std::errc::timed_out`: no
///   route, or no answer.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - `std::errc::too_many_files_open`, `std::errc::address_not_available`: no descriptor or no port
///   is free.
/// - Any other error of socket(2), bind(2) and connect(2).
/// @par Cancellation
/// The attempt ends and its socket is closed.
/// @par Example
/// @snippet connect_with_timeout.cpp connect
[[nodiscard]] task<result<tcp_stream>> async_connect(endpoint to, connect_options options = {});

/// Connects to `host`, a name or an address, by Happy Eyeballs (RFC 8305).
///
/// IPv6 and IPv4 addresses are looked up at the same time, as by async_resolve(). Addresses are
/// tried in turn, IPv6 first and then alternating. Each attempt starts `attempt_delay` after the
/// previous one, or as soon as that has failed; the first that succeeds is the connection. The
/// other attempts are then stopped, and joined before this returns. If the IPv4 addresses are known
/// first, they wait up to `resolution_delay` for the IPv6 addresses. At most 32 addresses are
/// tried.
///
/// @param host  Copied. As for async_resolve().
/// @return The first connection. A server may see further ones that end without a byte: an attempt
///         can succeed while it is being stopped.
///
/// @par Errors
/// `connect_options::report` has the error of every attempt.
/// - That of the last attempt that failed, as above. An error without a route (such as
///   `std::errc::network_unreachable`) is reported only if no attempt had a route.
/// - Without any address: as for async_resolve().
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// @par Cancellation
/// Every attempt ends and its socket is closed; lookups are abandoned, see async_resolve().
/// @par Cost
/// Allocates for the name and for each attempt; one descriptor for each attempt under way.
/// @par Example
/// @snippet docs/snippets/resolving.cpp connect
[[nodiscard]] task<result<tcp_stream>> async_connect(std::string_view host, std::uint16_t port,
                                                     connect_options options = {});

/// Connects to a Unix domain listener. While its backlog is full, which the kernel offers no way to
/// wait for, it retries after pauses that grow from 1 to 50 ms.
///
/// @par Errors
/// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: nobody listens.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - Any other error of socket(2) and connect(2).
[[nodiscard]] task<result<local_stream>> async_connect(local_endpoint to);

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
