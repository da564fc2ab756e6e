#pragma once
// listening_socket: what a server accepts with, whatever the kind of its connections. Layer net,
// private.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/async_socket.hpp>
#include <simplenet/io/detail/accept_operation.hpp>

#include <utility>

namespace simplenet::v0::detail {

/// Awaitable of listening_socket::accept().
class [[nodiscard]] accept_descriptor_operation final : public accept_base {
public:
    explicit accept_descriptor_operation(socket_record* of) noexcept
        : accept_base{of} {}

    result<unique_fd> await_resume() noexcept {
        if (error != 0) return fail(code());
        return std::move(accepted);
    }
};

/// A listener whose connections are descriptors, and which can be drained. Loop thread only.
class listening_socket final : public async_socket {
public:
    /// Takes a nonblocking listening socket; throws std::bad_alloc.
    listening_socket(unique_fd socket, unsigned accept_ahead);

    /// As async_listener::accept().
    [[nodiscard]] accept_descriptor_operation accept() noexcept {
        return accept_descriptor_operation{record()};
    }

    /// A connection that waits or was accepted ahead; otherwise operation_would_block.
    ///
    /// @pre No accept is in flight.
    /// @par Errors
    /// - `std::errc::operation_would_block`: no connection is known to wait; see is_draining().
    /// - `std::errc::bad_file_descriptor`: already closed.
    /// - Any other error of accept(2) on the listener.
    [[nodiscard]] result<unique_fd> try_accept() noexcept;

    /// The kernel accepts no more connections for this listener by itself; those that it has
    /// accepted are still returned by try_accept() and accept().
    void stop_accepting_ahead() noexcept;
    /// After stop_accepting_ahead(): the kernel may still report a connection, in a turn or two.
    [[nodiscard]] bool is_accepting_ahead() const noexcept;
    /// Nothing is accepted because descriptors or memory have run out; accept() waits for them.
    [[nodiscard]] bool is_out_of_descriptors() const noexcept;
};

} // namespace simplenet::v0::detail
