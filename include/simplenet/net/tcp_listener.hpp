#pragma once
// tcp_listener: takes TCP connections. Layer net.

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Awaitable of accept(); the contract is documented with the listeners.
class accept_base : public awaitable_operation<starts::reads> {
protected:
    explicit accept_base(socket_record* of) noexcept
        : awaitable_operation{of, request::accept} {
        moved = 0; // nothing to close yet
        error = 0;
    }
    accept_base(accept_base&& other) noexcept
        : awaitable_operation{std::move(other)} {
        moved = 0;
        error = 0;
    }
    ~accept_base() { static_cast<void>(take()); }

    /// The accepted descriptor, once.
    [[nodiscard]] unique_fd take() noexcept;
};

template <class Stream, class Socket>
class [[nodiscard]] accept_operation final : public accept_base {
public:
    explicit accept_operation(socket_record* of) noexcept
        : accept_base{of} {}

    result<Stream> await_resume() {
        if (error != 0) return fail(code());
        return Stream{socket_access::make<Socket>(take())};
    }
};

/// A handle to a socket that listens.
class listening_object : public io_object {
protected:
    explicit listening_object(unique_fd socket);
};

} // namespace detail

inline namespace runtime {

/// A listening TCP socket.
///
/// A handle like tcp_stream. Connections may be accepted ahead of accept(), at most 64 and what
/// comes in the same turn, but not while descriptors are few (RLIMIT_NOFILE); they are handed out
/// in order, and closed by close(). Options and addresses are documented with its bases. Loop
/// thread only.
///
/// @par Example
/// @snippet echo_server.cpp accept
class tcp_listener : public detail::listening_object,
                     public ip_socket_names<tcp_listener>,
                     public tcp_settings<tcp_listener> {
public:
    using accept_operation = detail::accept_operation<tcp_stream, nonblocking::tcp_stream>;

    /// Takes a listening socket; throws std::bad_alloc.
    explicit tcp_listener(nonblocking::tcp_listener socket)
        : listening_object{std::move(socket).release()} {}

    /// Listens at `at`; with port 0 on a free one, which local_endpoint() tells.
    ///
    /// @pre `options.backlog` is not negative.
    ///
    /// @par Errors
    /// - `std::errc::address_in_use`: somebody listens there.
    /// - `std::errc::address_not_available`: not an address of this machine.
    /// - `std::errc::permission_denied`: the port is reserved for privileged programs.
    /// - Anything else socket(2), setsockopt(2), bind(2) and listen(2) report.
    [[nodiscard]] static result<tcp_listener> bind(const endpoint& at,
                                                   const listen_options& options = {});

    /// Waits for a connection.
    ///
    /// Out of descriptors or memory is no error: the connections wait in the backlog, and
    /// accepting resumes when this loop closes a descriptor, or after a pause of 10 to 500 ms.
    /// Connections that failed while they were queued are passed over.
    ///
    /// @pre No other accept is in flight on this listener.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop, close() or a deadline
    ///   came first.
    /// - `std::errc::bad_file_descriptor`: closed before.
    /// - Anything else accept(2) reports of the listener.
    ///
    /// @par Cancellation
    /// No connection is lost: what was accepted before the stop took effect is returned, now or by
    /// the next accept().
    [[nodiscard]] accept_operation accept() noexcept { return accept_operation{record()}; }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
