#pragma once
// inherited_listeners: the sockets that a service manager such as systemd passes to this process.
// Layer server.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A socket that this process was started with.
struct inherited_listener {
    std::string name; // FileDescriptorName= in systemd.socket(5); "unknown" if nobody named it
    unique_fd socket; // closed on exec; adopt() of a listener or UDP socket checks its kind
};

/// Takes the sockets that this process was started with, in the order of their numbers: sockets of
/// the units that activate it, in the protocol of sd_listen_fds(3). Empty if there are none, if
/// they are meant for another process, and in every later call.
///
/// The environment stays as it is: LISTEN_FDS and LISTEN_FDNAMES describe the descriptors, and
/// LISTEN_PID names this process, so a child does not take them for its own.
///
/// A program that runs under a manager and without one listens itself if the result is empty.
///
/// @return Listening sockets, and datagram sockets. The blocking mode is the one they came with.
///
/// @par Errors
/// After an error, or a std::bad_alloc, nothing was taken: the descriptors stay open, and a later
/// call looks again. Nothing was changed either, with one exception: if fcntl(2) fails for a later
/// descriptor, the earlier ones already have FD_CLOEXEC.
/// - `std::errc::invalid_argument`: LISTEN_PID or LISTEN_FDS is no plain decimal number, or
///   LISTEN_FDNAMES does not have a name for each descriptor; or a socket is connected, as with
///   `Accept=yes`, or does not listen.
/// - `std::errc::bad_file_descriptor`: there are fewer descriptors than LISTEN_FDS says.
/// - `std::errc::not_a_socket`: one of them is a pipe or a file.
///
/// @par Thread safety
/// Any thread, as long as no other thread changes the environment (getenv(3)). Of several calls at
/// once, one gets the sockets.
/// @par Cost
/// Four system calls for each socket.
[[nodiscard]] result<std::vector<inherited_listener>> inherited_listeners();

} // namespace simplenet::v0

#pragma GCC visibility pop
