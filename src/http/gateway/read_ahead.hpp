#pragma once
// read_ahead: passes an answer on, and reads it faster than a slow client takes it. Layer http,
// private.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/sync/async_event.hpp>

#include <cstddef>
#include <deque>
#include <system_error>

namespace simplenet::v0::http::detail {

/// Copies a body from a backend to a client.
///
/// Promises: what has arrived is passed on at once, in the same order. While the client takes less
/// than the backend sends, up to `most` bytes are held here, so that the backend is done with an
/// answer of that size whatever its client does. Everything that was read is offered to the client
/// before an error of the backend is reported.
///
/// Used once. Loop thread only.
class read_ahead {
public:
    static constexpr std::size_t default_most = std::size_t{1024} * 1024;

    /// @param from  Releases the backend when it has read the end.
    /// @param to    Its head has not left, or has.
    /// @param most  Bytes, rounded up to blocks of 16 KiB.
    read_ahead(async_reader_ref from, response& to, std::size_t most = default_most) noexcept
        : from_{from}
        , to_{to}
        , most_{most} {}
    read_ahead(const read_ahead&) = delete;
    read_ahead& operator=(const read_ahead&) = delete;
    ~read_ahead() = default;

    /// Ends with the body. The response is not flushed, nor ended.
    ///
    /// @par Errors
    /// - Those of the reader but `end_of_stream`, see is_reader_failure().
    /// - Those of response::write_some().
    /// @par Cancellation
    /// What was read and not passed on is lost.
    /// @par Cost
    /// Two coroutines, and a block at a time while the client keeps up.
    [[nodiscard]] task<result<>> run();
    /// Whether run() failed because the reader did.
    [[nodiscard]] bool is_reader_failure() const noexcept { return static_cast<bool>(failure_); }

private:
    /// Invariant: bytes from `begin` to `end` wait; the reader fills the last block behind `end`.
    struct block {
        scratch memory;
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    [[nodiscard]] task<result<>> read();
    [[nodiscard]] task<result<>> write();
    /// The block to read into. Null: the client has to take something first.
    [[nodiscard]] block* block_with_room();
    void drop_written() noexcept;

    async_reader_ref from_;
    response& to_;
    const std::size_t most_;
    std::deque<block> blocks_;
    bool ended_ = false;
    std::error_code failure_;
    async_event has_bytes_; // or the end has come
    async_event has_room_;
};

} // namespace simplenet::v0::http::detail
