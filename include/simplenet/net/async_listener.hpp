#pragma once
// async_listener: accepting connections, for the listeners of the runtime. Layer net.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/async_socket.hpp>
#include <simplenet/io/detail/accept_operation.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Marks `socket` as a listener that accepts at most `ahead` connections before accept().
void become_listener(socket_record& socket, unsigned ahead);

} // namespace detail

inline namespace runtime {

/// Base of tcp_listener and local_listener: a listening socket whose connections are awaited.
///
/// `Stream` is the type of its connections, constructed from a `Socket`. Loop thread only.
template <class Stream, class Socket>
class async_listener : public async_socket {
public:
    using accept_operation = detail::accept_operation<Stream, Socket>;

    /// Waits for a connection.
    ///
    /// Running out of descriptors or memory is not an error: the connections wait in the backlog,
    /// and accepting resumes when this loop closes a descriptor, or after a pause of 10 to 500 ms.
    /// Connections that failed while they were queued are skipped.
    ///
    /// @pre No other accept is in flight on this listener.
    /// @return An awaitable of `result<Stream>`.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop, close() or a deadline
    ///   came first.
    /// - `std::errc::bad_file_descriptor`: already closed.
    /// - Any other error of accept(2) on the listener.
    ///
    /// @par Cancellation
    /// No connection is lost: one that was accepted before the stop took effect is returned, by
    /// this or by the next accept().
    [[nodiscard]] accept_operation accept() noexcept { return accept_operation{this->record()}; }

protected:
    /// Takes a listening socket; throws std::bad_alloc.
    async_listener(unique_fd socket, unsigned accept_ahead)
        : async_socket{std::move(socket)} {
        detail::become_listener(*record(), accept_ahead);
    }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
