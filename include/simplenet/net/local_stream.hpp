#pragma once
// local_stream: a Unix domain connection whose operations are awaited. Layer net.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/async_stream.hpp>
#include <simplenet/io/detail/descriptor_operations.hpp>
#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/socket/descriptor_transfers.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_settings.hpp>

#include <concepts>
#include <cstddef>
#include <expected>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A Unix domain connection, which can also pass open descriptors.
///
/// A handle to a record that its loop owns, with the rules of tcp_stream: it may be moved at any
/// time, destroying it is close(), and at most one read and one write may be in flight. Loop thread
/// only.
///
/// @par Example
/// @snippet descriptor_passing.cpp send
class local_stream : public async_stream,
                     public local_stream_names<local_stream>,
                     public socket_settings<local_stream> {
public:
    /// The result of release().
    struct released {
        nonblocking::local_stream socket;
        std::vector<std::byte> unread; // received but not read yet
    };

    /// Takes a connected socket; throws std::bad_alloc.
    explicit local_stream(nonblocking::local_stream socket);

    /// Two streams connected to each other.
    ///
    /// @par Errors
    /// - `std::errc::too_many_files_open` and any other error of socketpair(2).
    [[nodiscard]] static result<std::pair<local_stream, local_stream>> pair();

    /// Leaves the loop, for another loop or for other uses. Waits until the kernel no longer uses
    /// the socket. This object is empty afterwards.
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

    /// Writes all of `bytes`, and sends duplicates of `descriptors` with the first byte.
    ///
    /// @pre `bytes` is not empty, and no other write is in flight on this stream.
    /// @param bytes        Borrowed until the await returns, as is the array of descriptors.
    /// @param descriptors  They may be closed when the await has returned.
    /// @return An awaitable of `transfer_result`: `bytes.size()`.
    ///
    /// @par Errors
    /// As for async_write_all(). The descriptors were sent if and only if `transferred` is not 0.
    /// Also:
    /// - `errc::limit_exceeded`: more than most_descriptors (253).
    /// - `std::errc::bad_file_descriptor`: one of them is not open, or the stream was closed.
    /// - ETOOMANYREFS: as many as the process may open are already in flight (unix(7)).
    /// @par Cancellation
    /// As for async_write_all().
    /// @par Example
    /// @snippet descriptor_passing.cpp send
    [[nodiscard]] detail::send_descriptors_operation
    send_descriptors(const_buffer bytes, std::span<const int> descriptors) noexcept {
        return {record(), bytes, descriptors};
    }
    /// The same for one descriptor. A template, so that `{}` means no descriptor, not number 0.
    template <std::same_as<int> Descriptor>
    [[nodiscard]] detail::send_descriptors_operation
    send_descriptors(const_buffer bytes, Descriptor descriptor) noexcept {
        return {record(), bytes, descriptor};
    }

    /// Reads as read_some() does, and takes the descriptors that were sent with these bytes.
    ///
    /// They arrive with the first of the bytes they were sent with, and one read never goes beyond
    /// the bytes that descriptors came with. All are CLOEXEC. Any other read of those bytes, such
    /// as read_some() or receive(), closes them. But a read never takes more bytes than were asked
    /// for, so the descriptors behind them wait in the kernel.
    ///
    /// @pre `into` is not empty, and no other read is in flight on this stream.
    /// @param into  Borrowed until the await returns.
    /// @param most  A peer that sends more at once is refused.
    /// @return An awaitable of `std::expected<received_descriptors, transfer_error>`: the number of
    ///         bytes, at least 1, and the descriptors, if any. Destroying the result closes the
    ///         descriptors that were not taken out.
    ///
    /// @par Errors
    /// `transferred` is the number of bytes that were received nevertheless. All descriptors that
    /// arrived are closed.
    /// - `errc::limit_exceeded`: more than `most` descriptors.
    /// - `std::errc::too_many_files_open`: the process has no room for them (MSG_CTRUNC).
    /// - Otherwise as for read_some(), with 0 bytes.
    /// @par Cancellation
    /// As for read_some(): if a stop came first, the descriptors are still in the kernel.
    /// @par Cost
    /// At most one recvmsg(2) and one wait. One allocation if descriptors arrived.
    /// @par Example
    /// @snippet descriptor_passing.cpp receive
    [[nodiscard]] detail::receive_descriptors_operation
    receive_descriptors(mutable_buffer into, std::size_t most = most_descriptors) noexcept {
        return {record(), into, most};
    }
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
