#pragma once
// async_connect: client connections. Layer runtime.

#include <simplenet/coro/task.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/runtime/local_stream.hpp>
#include <simplenet/runtime/tcp_stream.hpp>

#include <optional>

namespace simplenet {
inline namespace runtime {

/// How a connection is made.
struct connect_options {
    /// Sends small writes at once (TCP_NODELAY, tcp(7)).
    bool no_delay = false;
    /// Where to connect from; a port of 0 is a free one.
    std::optional<endpoint> from = std::nullopt;
};

/// Connects to `to`. For a limit in time put with_timeout() around it.
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

/// Connects to a Unix domain listener. While its backlog is full, which nothing can wait for, it
/// tries again after 1 ms and then more and more, up to 50 ms.
///
/// @par Errors
/// - `std::errc::connection_refused`, `std::errc::no_such_file_or_directory`: nobody listens.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - Anything else socket(2) and connect(2) report.
[[nodiscard]] task<result<local_stream>> async_connect(local_endpoint to);

} // namespace runtime
} // namespace simplenet
