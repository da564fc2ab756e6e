#pragma once
// Reading and writing streams, on a descriptor. Layer socket, private: used by the blocking and
// nonblocking sockets and by the operations of the runtime, which wait differently.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/core/write_options.hpp>

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

namespace simplenet::v0::detail::streams {

// Documented at the members of stream_socket and whole_transfers.

[[nodiscard]] result<std::size_t> read_some(int fd, mutable_buffer into) noexcept;
[[nodiscard]] result<std::size_t> write_some(int fd, const_buffer from,
                                             write_options options) noexcept;
[[nodiscard]] result<std::size_t> write_some(int fd, std::span<const const_buffer> from,
                                             write_options options) noexcept;
[[nodiscard]] transfer_result read_exact(int fd, mutable_buffer into) noexcept;
[[nodiscard]] transfer_result write_all(int fd, const_buffer from, write_options options) noexcept;
[[nodiscard]] transfer_result write_all(int fd, std::span<const const_buffer> from,
                                        write_options options) noexcept;
[[nodiscard]] result<> shutdown_write(int fd) noexcept;

/// A negated errno, or the number of bytes sent; the descriptors, at most most_descriptors, go with
/// the first byte.
[[nodiscard]] std::ptrdiff_t send_descriptors(int fd, const_buffer bytes,
                                              std::span<const int> descriptors) noexcept;

/// A negated errno, or the number of bytes received, 0 at the end of the stream. On success `into`
/// has the descriptors; or it is empty, and `refused` says why they were closed.
[[nodiscard]] std::ptrdiff_t receive_descriptors(int fd, mutable_buffer bytes, std::size_t most,
                                                 std::vector<unique_fd>& into,
                                                 std::error_code& refused) noexcept;

} // namespace simplenet::v0::detail::streams
