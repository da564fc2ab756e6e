#pragma once
// local_stream_socket: a stream_socket that can also pass open descriptors. Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/socket/descriptor_transfers.hpp>
#include <simplenet/socket/stream_socket.hpp>

#include <concepts>
#include <cstddef>
#include <expected>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A Unix domain stream that owns its descriptor: each operation is one system call.
class local_stream_socket : public stream_socket {
public:
    /// Writes at least one byte of `bytes` and sends duplicates of `descriptors` with the first.
    /// Write the remaining bytes with `write_some()`.
    ///
    /// @pre `bytes` is not empty: descriptors cannot be sent without a byte.
    /// @param descriptors  Borrowed for the call; they may be closed afterwards.
    /// @return The number of bytes taken. On failure nothing was sent, not even descriptors.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded`: more than most_descriptors.
    /// - `std::errc::bad_file_descriptor`: one of them is not open.
    /// - ETOOMANYREFS: as many as the process may open are already in flight (unix(7)).
    /// - Otherwise as for `write_some()`.
    [[nodiscard]] result<std::size_t> send_descriptors(const_buffer bytes,
                                                       std::span<const int> descriptors) noexcept;
    /// The same for one descriptor. A template, so that `{}` means no descriptor, not number 0.
    template <std::same_as<int> Descriptor>
    [[nodiscard]] result<std::size_t> send_descriptors(const_buffer bytes,
                                                       Descriptor descriptor) noexcept {
        return send_descriptors(bytes, std::span<const int>{&descriptor, 1});
    }

    /// Reads as `read_some()` does, and takes the descriptors that were sent with these bytes.
    ///
    /// They arrive with the first of the bytes they were sent with, and one call never goes beyond
    /// the bytes that descriptors came with. Any other read of those bytes closes the descriptors.
    ///
    /// @pre `into` is not empty.
    /// @param most  A peer that sends more at once is refused.
    ///
    /// @par Errors
    /// The error contains the number of bytes that were received nevertheless. All descriptors that
    /// arrived are closed.
    /// - `errc::limit_exceeded`: more than `most` descriptors.
    /// - `std::errc::too_many_files_open`: the process has no room for them (MSG_CTRUNC).
    /// - Otherwise as for `read_some()`.
    [[nodiscard]] std::expected<received_descriptors, transfer_error>
    receive_descriptors(mutable_buffer into, std::size_t most = most_descriptors);

protected:
    explicit local_stream_socket(unique_fd socket) noexcept
        : stream_socket{std::move(socket)} {}
};

} // namespace simplenet::v0

#pragma GCC visibility pop
