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

/// A Unix domain connection, which open descriptors travel over as well.
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
    /// What release() gives.
    struct released {
        nonblocking::local_stream socket;
        std::vector<std::byte> unread; // received already, and not read
    };

    /// Takes a connected socket; throws std::bad_alloc.
    explicit local_stream(nonblocking::local_stream socket);

    /// Two streams connected to each other.
    ///
    /// @par Errors
    /// - `std::errc::too_many_files_open` and what else socketpair(2) reports.
    [[nodiscard]] static result<std::pair<local_stream, local_stream>> pair();

    /// Leaves the loop, for another one or for other uses: waits until the kernel has let go.
    /// The stream is empty afterwards.
    ///
    /// @pre No operation is in flight.
    /// @return The socket, and the bytes that were received and not read.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: closed before.
    /// - `std::errc::operation_canceled`: the loop ends, which closes it.
    /// @par Cancellation
    /// A stop does not end it: it takes a turn or two.
    [[nodiscard]] task<result<released>> release() &&;

    /// Writes all of `bytes`, and sends duplicates of `descriptors` with the first of them.
    ///
    /// @pre `bytes` is not empty, and no other write is in flight on this stream.
    /// @param bytes        Borrowed until the await returns, as is the array of descriptors.
    /// @param descriptors  They may be closed when the await has returned.
    /// @return An awaitable of `transfer_result`: `bytes.size()`.
    ///
    /// @par Errors
    /// As of async_write_all(). The descriptors have gone if `transferred` is not 0, and not
    /// otherwise. Also:
    /// - `errc::limit_exceeded`: more than most_descriptors (253).
    /// - `std::errc::bad_file_descriptor`: one of them is not open, or the stream was closed.
    /// - ETOOMANYREFS: as many as the process may open are on their way already (unix(7)).
    /// @par Cancellation
    /// As of async_write_all().
    /// @par Example
    /// @snippet descriptor_passing.cpp send
    [[nodiscard]] detail::send_descriptors_operation
    send_descriptors(const_buffer bytes, std::span<const int> descriptors) noexcept {
        return {record(), bytes, descriptors};
    }
    /// The same for one descriptor. A template, so that `{}` is none of them, and not number 0.
    template <std::same_as<int> Descriptor>
    [[nodiscard]] detail::send_descriptors_operation
    send_descriptors(const_buffer bytes, Descriptor descriptor) noexcept {
        return {record(), bytes, descriptor};
    }

    /// Reads as read_some() does, and takes the descriptors that were sent with these bytes.
    ///
    /// They come with the first of the bytes that they were sent with, and one read never goes
    /// beyond the bytes that descriptors came with. All are CLOEXEC. Every other read of those
    /// bytes, read_some() or receive() say, closes them; it never takes more than was asked for, so
    /// that the descriptors behind it wait in the kernel.
    ///
    /// @pre `into` is not empty, and no other read is in flight on this stream.
    /// @param into  Borrowed until the await returns.
    /// @param most  A peer that sends more at once is refused.
    /// @return An awaitable of `std::expected<received_descriptors, transfer_error>`: the number of
    ///         bytes, at least 1, and the descriptors, which may be none. Destroying it closes the
    ///         descriptors that nobody took out.
    ///
    /// @par Errors
    /// `transferred` says how many bytes came nevertheless. All descriptors that came are closed.
    /// - `errc::limit_exceeded`: more than `most` descriptors.
    /// - `std::errc::too_many_files_open`: the process has no room for them (MSG_CTRUNC).
    /// - As of read_some() otherwise, with 0 bytes.
    /// @par Cancellation
    /// As of read_some(): descriptors that a stop came before are still in the kernel.
    /// @par Cost
    /// At most one recvmsg(2) and one wait. One allocation if descriptors came.
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
