#pragma once
// nonblocking::tcp_listener: takes TCP connections that are waiting. Layer nonblocking.

#include <simplenet/nonblocking/tcp_stream.hpp>
#include <simplenet/socket/socket_types.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {
class tcp_listener;
} // namespace simplenet::v0::blocking

namespace simplenet::v0::nonblocking {

/// A listening TCP socket. Owns its descriptor; destroying it is `close()`, which also resets the
/// connections that wait to be accepted.
///
/// Options and addresses are documented with its bases.
///
/// @par Thread safety
/// Any number of threads may accept at the same time.
class tcp_listener : public detail::tcp_listener_base {
public:
    /// For the library: `socket` is known to be a nonblocking TCP listener.
    explicit tcp_listener(detail::known_socket socket) noexcept
        : with_ip_names{std::move(socket)} {}

    /// Listens at `at`; with port 0 on a free one, which `local_endpoint()` tells.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: somebody listens there.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - Anything else socket(2), setsockopt(2), bind(2) and listen(2) report.
    [[nodiscard]] static result<tcp_listener> bind(const endpoint& at,
                                                   const listen_options& options = {}) noexcept;

    /// Takes a connection that is waiting. Connections that failed while they were queued are
    /// passed over.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: none is waiting.
    /// - `std::errc::too_many_files_open`, `std::errc::too_many_files_open_in_system`,
    ///   `std::errc::no_buffer_space`, `std::errc::not_enough_memory`: no room for another
    ///   socket. The connection stays queued: free something before trying again.
    /// - Anything else accept(2) reports.
    [[nodiscard]] result<tcp_stream> accept() noexcept;

    /// Takes over a descriptor made elsewhere, by a service manager say; makes it CLOEXEC and
    /// sets O_NONBLOCK, which it shares with its duplicates. On failure it is closed.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: a socket, but not of TCP, or not listening.
    /// - `std::errc::not_a_socket`, `std::errc::bad_file_descriptor`: not even that.
    [[nodiscard]] static result<tcp_listener> adopt(unique_fd fd) noexcept;

    /// Makes a blocking listener not wait.
    [[nodiscard]] static result<tcp_listener> from(blocking::tcp_listener&& other) noexcept;
};

} // namespace simplenet::v0::nonblocking

#pragma GCC visibility pop
