#pragma once
// Reading and writing of streams, on a descriptor. Layer socket, private: for the blocking and
// nonblocking sockets and for the operations of the runtime, which differ in how they wait.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

namespace simplenet::v0::detail::streams {

// The members of stream_socket and whole_transfers have the documentation.

[[nodiscard]] result<std::size_t> read_some(int fd, mutable_buffer into) noexcept;
[[nodiscard]] result<std::size_t> write_some(int fd, const_buffer from) noexcept;
[[nodiscard]] result<std::size_t> write_some(int fd, std::span<const const_buffer> from) noexcept;
[[nodiscard]] transfer_result read_exact(int fd, mutable_buffer into) noexcept;
[[nodiscard]] transfer_result write_all(int fd, const_buffer from) noexcept;
[[nodiscard]] transfer_result write_all(int fd, std::span<const const_buffer> from) noexcept;
[[nodiscard]] result<> shutdown_write(int fd) noexcept;

/// A negated errno, or how many bytes went, the descriptors with the first of them. At most
/// most_descriptors.
[[nodiscard]] std::ptrdiff_t send_descriptors(int fd, const_buffer bytes,
                                              std::span<const int> descriptors) noexcept;

/// A negated errno, or how many bytes came, 0 at the end of the stream. Then `into` has the
/// descriptors; or it has none, and `refused` says why they were closed.
[[nodiscard]] std::ptrdiff_t receive_descriptors(int fd, mutable_buffer bytes, std::size_t most,
                                                 std::vector<unique_fd>& into,
                                                 std::error_code& refused) noexcept;

} // namespace simplenet::v0::detail::streams
