#pragma once
// request_sender: a request that is leaving for a FastCGI backend. Layer http, private.

#include "http/client/send_limit.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace simplenet::v0::http::detail {

/// Sends the records of a request, in as many calls of run() as it takes. Nothing is in flight
/// between the calls.
class request_sender {
public:
    /// @param front   The records up to the body, and perhaps all of it. Borrowed.
    /// @param source  The body; none: `front` is everything.
    /// @param size    Bytes of the source.
    /// @param idle    How long the backend may take nothing that is sent to it. 0: no limit.
    request_sender(const_buffer front, async_reader_ref source, std::uint64_t size,
                   std::chrono::nanoseconds idle) noexcept
        : front_{front}
        , source_{source}
        , left_{size}
        , limit_{idle} {}
    request_sender(const request_sender&) = delete;
    request_sender& operator=(const request_sender&) = delete;
    ~request_sender() = default;

    /// Sends what the kernel takes without waiting: nearly always everything.
    void try_send(any_stream& to);
    /// Sends until everything has left, or it cannot go on. A stop loses nothing.
    [[nodiscard]] task<result<>> run(any_stream& to);
    /// Whether run() has something to do.
    [[nodiscard]] bool can_run() const noexcept { return !over_; }
    /// What has not left stays.
    void give_up() noexcept { over_ = true; }

    /// Whether all of it has left.
    [[nodiscard]] bool is_complete() const noexcept { return complete_; }
    /// Whether a byte of it has left.
    [[nodiscard]] bool has_sent() const noexcept { return has_sent_; }
    /// Whether the source has been read, so that what it gave cannot be had again from it.
    [[nodiscard]] bool has_read_source() const noexcept { return has_read_; }
    /// Whether the backend has taken nothing for too long. Then run() has failed.
    [[nodiscard]] bool is_late() const noexcept { return limit_.is_exceeded(); }
    /// Why the source could not be read to its end; zero if it could.
    [[nodiscard]] std::error_code source_failure() const noexcept { return source_failure_; }
    /// Why the connection took no more; zero if it did.
    [[nodiscard]] std::error_code write_failure() const noexcept { return write_failure_; }

private:
    void took(std::size_t count) noexcept;
    void look_for_end() noexcept;
    [[nodiscard]] task<result<>> read_source();

    const_buffer front_; // what leaves next
    async_reader_ref source_;
    std::uint64_t left_; // of the source
    scratch block_;      // a record
    bool has_sent_ = false;
    bool has_read_ = false;
    bool over_ = false;
    bool complete_ = false;
    std::error_code source_failure_;
    std::error_code write_failure_;
    send_limit limit_;
};

} // namespace simplenet::v0::http::detail
