#pragma once
// Sending and receiving datagrams, one system call each. Layer socket, private: used by the
// blocking and nonblocking sockets and by the operations of the runtime, which wait differently.
//
// Results are those of sys/calls.hpp: a count, or a negated errno.

#include <simplenet/core/error.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>

#include <cstddef>
#include <span>

#include <sys/types.h>

namespace simplenet::v0::detail::datagrams {

/// The most datagrams of a batch that one call takes: more saves nothing, and the headers are on
/// the stack.
inline constexpr std::size_t most_at_once = 64;

/// Bytes sent.
[[nodiscard]] ssize_t send_one(int fd, const_buffer from, const endpoint* to,
                               const udp_send_options& options) noexcept;
[[nodiscard]] ssize_t send_one(int fd, const_buffer from, const local_endpoint* to) noexcept;

/// 0, with the result in `about`.
[[nodiscard]] ssize_t receive_one(int fd, mutable_buffer into, udp_datagram& about) noexcept;
[[nodiscard]] ssize_t receive_one(int fd, mutable_buffer into, local_message& about) noexcept;

/// Datagrams sent of the first `most_at_once`: at least 1, or 0 if the batch is empty.
[[nodiscard]] ssize_t send_some(int fd, std::span<const outgoing_datagram> from,
                                segment_limit& limit) noexcept;
[[nodiscard]] ssize_t send_some(int fd, std::span<const outgoing_message> from) noexcept;

/// Datagrams received into the first `most_at_once`, at least 1.
[[nodiscard]] ssize_t receive_some(int fd, std::span<incoming_datagram> into) noexcept;
[[nodiscard]] ssize_t receive_some(int fd, std::span<incoming_message> into) noexcept;

/// Bytes sent, in whole segments.
///
/// @pre Neither `from` nor `segment_size` is empty.
[[nodiscard]] ssize_t send_segments(int fd, const_buffer from, std::size_t segment_size,
                                    const endpoint* to, const udp_send_options& options,
                                    segment_limit& limit) noexcept;

// Documented at the members of basic_udp_socket and basic_local_datagram.

[[nodiscard]] result<udp_datagram> receive_from(int fd, mutable_buffer into) noexcept;
[[nodiscard]] result<local_message> receive_message(int fd, mutable_buffer into) noexcept;
[[nodiscard]] transfer_result send_batch(int fd, std::span<const outgoing_datagram> from,
                                         segment_limit& limit) noexcept;
[[nodiscard]] transfer_result send_batch(int fd, std::span<const outgoing_message> from) noexcept;
[[nodiscard]] transfer_result send_segmented(int fd, const_buffer from, std::size_t segment_size,
                                             const endpoint* to, const udp_send_options& options,
                                             segment_limit& limit) noexcept;

} // namespace simplenet::v0::detail::datagrams
