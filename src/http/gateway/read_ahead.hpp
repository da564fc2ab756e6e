#pragma once
// read_ahead: passes an answer on, and reads it faster than a slow client takes it. Layer http,
// private.

#include "http/gateway/backend_set.hpp"
#include "http/gateway/spool_queue.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/sync/async_event.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// How far an answer is read ahead of its client.
struct ahead_limits {
    /// Bytes in memory, rounded up to blocks of 16 KiB.
    std::size_t memory = std::size_t{1024} * 1024;
    /// Further bytes in a file, a multiple of spool_block. 0: none.
    std::uint64_t file = 0;
    /// For the file; borrowed.
    std::string_view directory{};
    /// Bounds the files of many answers together. null: no such bound.
    disk_budget* budget = nullptr;
    /// Once all that is full, the longest time in which a client takes nothing of it: the backend
    /// waits for the client then. 0: no limit.
    std::chrono::nanoseconds hold{0};
    /// Another limit, while other requests have waited for this backend as long. 0: none.
    std::chrono::nanoseconds hold_while_wanted{0};
    const backend_lease* backend = nullptr; ///< that of `hold_while_wanted`; borrowed
};

/// Copies a body from a backend to a client.
///
/// Promises: what has arrived is passed on at once, in the same order. While the client takes less
/// than the backend sends, as much is held here as the limits allow, so that the backend is done
/// with an answer of that size whatever its client does. Everything that was read is offered to the
/// client before an error of the backend is reported. A disk that fails or is full costs nothing
/// but the room that it would have given.
///
/// Used once. Loop thread only.
class read_ahead {
public:
    /// @param from  Releases the backend when it has read the end.
    /// @param to    Its head has not left, or has.
    read_ahead(async_reader_ref from, response& to, const ahead_limits& limits) noexcept
        : from_{from}
        , to_{to}
        , limits_{limits}
        , spool_{limits.directory, limits.file, limits.budget} {}
    read_ahead(const read_ahead&) = delete;
    read_ahead& operator=(const read_ahead&) = delete;
    ~read_ahead() = default;

    /// Ends with the body. The response is not flushed, nor ended.
    ///
    /// @par Errors
    /// - Those of the reader but `end_of_stream`, see is_reader_failure().
    /// - Those of response::write_some().
    /// - `errc::deadline_exceeded`: the client has held the backend for too long, see is_held().
    /// - What could not be read back from the file, see disk_failure().
    /// @par Cancellation
    /// What was read and not passed on is lost.
    /// @par Cost
    /// Two coroutines, and a block at a time while the client keeps up.
    [[nodiscard]] task<result<>> run();
    /// Whether run() failed because the reader did.
    [[nodiscard]] bool is_reader_failure() const noexcept { return static_cast<bool>(failure_); }
    /// Whether run() failed because the client held the backend.
    [[nodiscard]] bool is_held() const noexcept { return is_held_; }
    /// Why the file could not be used, also if run() succeeded without it.
    [[nodiscard]] std::error_code disk_failure() const noexcept { return disk_failure_; }

private:
    /// Invariant: bytes from `begin` to `end` wait; the reader fills the last block behind `end`.
    struct block {
        scratch memory;
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    [[nodiscard]] task<result<>> read();
    /// Memory for the next bytes. Empty: the client has to take something first.
    [[nodiscard]] mutable_buffer room();
    /// `count` bytes were read into room().
    [[nodiscard]] task<result<>> keep(std::size_t count);
    /// Waits until the client has taken something.
    [[nodiscard]] task<result<>> wait_for_client();
    [[nodiscard]] task<result<>> write();
    /// The block to read into. Null: there may be no more of them.
    [[nodiscard]] block* block_with_room();
    [[nodiscard]] bool has_blocks() const noexcept {
        return !blocks_.empty() && blocks_.front().begin != blocks_.front().end;
    }
    void drop_written() noexcept;

    async_reader_ref from_;
    response& to_;
    const ahead_limits limits_;
    std::deque<block> blocks_; // precede what is in the spool
    spool_queue spool_;
    block* into_ = nullptr; // where room() is; null: in the spool
    bool ended_ = false;
    bool is_held_ = false;
    std::error_code failure_;
    std::error_code disk_failure_;
    async_event has_bytes_; // or the end has come
    async_event has_room_;
};

} // namespace simplenet::v0::http::detail
