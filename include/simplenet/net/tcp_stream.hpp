#pragma once
// tcp_stream: a TCP connection whose operations are awaited. Layer net.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/async_stream.hpp>
#include <simplenet/nonblocking/tcp_stream.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A TCP connection.
///
/// A handle to a record that belongs to the loop of the first awaited operation. The handle may be
/// moved at any time, even while operations are in flight. Destroying it is close(). A loop closes
/// its streams when it ends; operations on them then fail with `std::errc::bad_file_descriptor`. At
/// most one read and one write may be in flight. Loop thread only.
///
/// @par Example
/// @snippet echo_server.cpp serve
class tcp_stream : public async_stream,
                   public ip_socket_names<tcp_stream>,
                   public tcp_settings<tcp_stream> {
public:
    /// The result of release().
    struct released {
        nonblocking::tcp_stream socket;
        std::vector<std::byte> unread; // received but not read yet
    };

    /// Takes a connected socket; throws std::bad_alloc.
    explicit tcp_stream(nonblocking::tcp_stream socket)
        : async_stream{std::move(socket)} {}
    /// Leaves the loop, for another loop or for other uses. Waits until the kernel no longer uses
    /// the socket. This object is empty afterwards.
    ///
    /// If the loop received an error ahead of a read, such as a reset, the first read of `socket`
    /// fails with it, or the first read of a stream that is constructed from `socket`.
    ///
    /// @pre No operation is in flight.
    /// @return The socket, and the bytes that were received but not read.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: already closed.
    /// - `std::errc::operation_canceled`: the loop ended, and closed the socket.
    /// @par Cancellation
    /// A stop does not end it: it takes a turn or two.
    [[nodiscard]] task<result<released>> release() &&;

    /// @name Closing
    /// @{

    /// What close() does with data that the peer has not acknowledged. None: the kernel continues
    /// to send in the background. Zero seconds: the data is dropped and the peer sees a reset.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: more than zero, which would block the loop in close(2).
    [[nodiscard]] result<> set_linger(std::optional<std::chrono::seconds> limit) noexcept;
    /// @}

private:
    friend detail::stream_access;
    explicit tcp_stream(detail::socket_record& given) noexcept
        : async_stream{given} {}
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
