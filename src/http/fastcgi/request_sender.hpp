#pragma once
// request_sender: a request that is leaving for a FastCGI backend. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/any_stream.hpp>

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
    request_sender(const_buffer front, async_reader_ref source, std::uint64_t size) noexcept
        : front_{front}
        , source_{source}
        , left_{size} {}
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
    /// Bytes that have left.
    [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
    /// Whether the source has been read, so that what it gave cannot be had again from it.
    [[nodiscard]] bool has_read_source() const noexcept { return has_read_; }
    /// Whether the last run() waited for the source, and so not only for the backend.
    [[nodiscard]] bool waited_for_source() const noexcept { return waited_for_source_; }
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
    bool has_read_ = false;
    bool over_ = false;
    bool complete_ = false;
    bool waited_for_source_ = false;
    std::error_code source_failure_;
    std::error_code write_failure_;
    std::uint64_t moved_ = 0;
};

} // namespace simplenet::v0::http::detail
