#pragma once
// send_limit: how long a peer may take nothing of what is sent to it. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace simplenet::v0::http::detail {

/// Adds up the time that writes wait since the peer last took something, also over writes that were
/// stopped. Neither the source of a body nor a caller who does something else is the peer's fault.
///
/// On sockets, also beneath TLS, a peer has taken what its kernel has acknowledged. Writability is
/// too coarse: the kernel tells of room only when a third of its buffer is free. What it accepts is
/// too much: a write that is tried again may fit, although the peer has read nothing. A receiver
/// whose buffer is full does not tell of small reads.
class send_limit {
public:
    /// @param most  0 or less: no limit.
    explicit send_limit(std::chrono::nanoseconds most) noexcept
        : most_{most} {}

    /// As any_stream::write_some(), on the same stream in all calls. Over TLS, an empty write sends
    /// the sealed bytes that earlier writes have left behind.
    ///
    /// @par Errors
    /// Those of writing to the stream; `errc::deadline_exceeded`: the limit, at most a second late,
    /// see is_exceeded().
    /// @par Cancellation
    /// Nothing is lost, and the time that it has waited stays counted.
    [[nodiscard]] task<result<std::size_t>> write(any_stream& to,
                                                  std::span<const const_buffer> from);
    [[nodiscard]] bool is_exceeded() const noexcept { return is_exceeded_; }

private:
    /// write(), where acceptance is all that is known, or without a limit.
    [[nodiscard]] task<result<std::size_t>> write_elsewhere(any_stream& to,
                                                            std::span<const const_buffer> from);
    /// write(), on a socket.
    [[nodiscard]] task<result<std::size_t>> write_on(int socket, any_stream& to,
                                                     std::span<const const_buffer> from);
    /// Starts the time anew if the peer has taken something.
    void look(int socket) noexcept;
    [[nodiscard]] std::unexpected<std::error_code> exceed() noexcept;

    std::chrono::nanoseconds most_;
    std::chrono::nanoseconds waited_{};        // since the peer took something
    std::optional<int> socket_;                // of the stream; below zero: it is none
    std::int64_t sent_ = 0;                    // on the socket
    std::optional<std::int64_t> acknowledged_; // when it last took something
    bool is_exceeded_ = false;
};

} // namespace simplenet::v0::http::detail
