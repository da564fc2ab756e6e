#pragma once
// send_limit: how long a peer may take nothing of what is sent to it. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <chrono>
#include <cstddef>
#include <span>

namespace simplenet::v0::http::detail {

/// Adds up the time that writes wait since the peer last took something, also over writes that were
/// stopped. Neither the source of a body nor a caller who does something else is the peer's fault.
class send_limit {
public:
    /// @param most  0 or less: no limit.
    explicit send_limit(std::chrono::nanoseconds most) noexcept
        : most_{most} {}

    /// As any_stream::write_some(). With TLS, no buffers send what earlier writes have left.
    ///
    /// @par Errors
    /// Those of writing to the stream; `errc::deadline_exceeded`: the limit, see is_exceeded().
    /// @par Cancellation
    /// Nothing is lost, and the time that it has waited stays counted.
    [[nodiscard]] task<result<std::size_t>> write(any_stream& to,
                                                  std::span<const const_buffer> from);
    [[nodiscard]] bool is_exceeded() const noexcept { return is_exceeded_; }

private:
    std::chrono::nanoseconds most_;
    std::chrono::nanoseconds waited_{}; // since the peer took something
    bool is_exceeded_ = false;
};

} // namespace simplenet::v0::http::detail
