#pragma once
// read_ahead: passes an answer on, and reads it faster than a slow client takes it. Layer http,
// private.

#include "http/gateway/shared_room.hpp"
#include "http/gateway/spool_queue.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// How far an answer is read ahead of its client.
struct ahead_limits {
    /// Bytes in memory, rounded up to blocks of 16 KiB. A block that the disk did not take is
    /// larger.
    std::size_t memory = std::size_t{1024} * 1024;
    /// Further bytes in a file, in whole blocks. Less than spool_block: none.
    std::uint64_t file = 0;
    /// For the file; borrowed.
    std::string_view directory{};
    /// Bounds many answers together. null: no such bound. Each answer has its first block anyway.
    answer_room shared{};
    /// Once all that is full, so that the backend waits for the client: how long the client may
    /// take nothing of what it is offered. 0: no limit.
    std::chrono::nanoseconds hold{0};
    /// Whether other requests have needed the backend for so long. Empty: nobody does.
    std::function<bool(std::chrono::steady_clock::time_point, std::chrono::nanoseconds)>
        is_wanted{};
    /// The limit in place of `hold` meanwhile, measured from when something is stored. Then it also
    /// counts as nothing if the client would need longer than `drained_within` for that.
    std::chrono::nanoseconds hold_while_wanted = std::chrono::seconds{2};
    std::chrono::nanoseconds drained_within = std::chrono::minutes{2};
    /// Whether the backend serves others already, although the end of this answer has not been
    /// read: then neither limit counts. Empty: it never does.
    std::function<bool()> is_free{};
};

/// Measures how long a client has taken next to nothing of what it was offered. The time in which
/// nothing could be offered, as while a disk is read, is not the client's.
class ignored_time {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Less than so many bytes, as a drip of single ones, are nothing.
    static constexpr std::int64_t something = std::int64_t{8} * 1024;

    /// Counts from here on; the client has taken `total` bytes before.
    void begin(time_point now, std::int64_t total) noexcept {
        before_ = {};
        total_ = total;
        if (is_offered_) since_ = now;
    }
    void offered(time_point now) noexcept {
        is_offered_ = true;
        since_ = now;
    }
    /// The offer is over.
    void answered(time_point now) noexcept {
        before_ = until(now);
        is_offered_ = false;
    }
    /// By now the client has taken `total` bytes. Fewer than `enough` are nothing.
    void taken(time_point now, std::int64_t total, std::int64_t enough = something) noexcept {
        if (total >= total_ + enough) begin(now, total);
    }
    [[nodiscard]] bool is_offered() const noexcept { return is_offered_; }
    /// Since begin(), or since it took something.
    [[nodiscard]] std::chrono::nanoseconds until(time_point now) const noexcept {
        return is_offered_ ? before_ + (now - since_) : before_;
    }

private:
    std::chrono::nanoseconds before_{}; // in offers that have ended
    std::int64_t total_ = 0;            // bytes, when the time began
    time_point since_{};
    bool is_offered_ = false;
};

/// Copies a body from a backend to a client.
///
/// Promises: what has arrived is passed on at once, in the same order. While the client takes less
/// than the backend sends, as much is held here as the limits allow, so that the backend is done
/// with an answer of that size whatever its client does. Everything that was read is offered to the
/// client before an error of the backend is reported. A disk that takes no more costs nothing but
/// room; one that does not return what it has taken costs the answer.
///
/// Used once. Loop thread only.
class read_ahead {
public:
    /// @param from  Releases the backend when it has read the end.
    /// @param to    Its head has not left, or has.
    read_ahead(async_reader_ref from, response& to, const ahead_limits& limits)
        : from_{from}
        , to_{to}
        , limits_{limits}
        , in_memory_{limits.shared.memory}
        , spool_{limits.directory, limits.file, limits.shared} {}
    read_ahead(const read_ahead&) = delete;
    read_ahead& operator=(const read_ahead&) = delete;
    ~read_ahead() = default;

    /// The head leaves without waiting for the first bytes. Before run().
    void send_head_first() noexcept { sends_head_first_ = true; }
    /// The first `count` bytes of `memory` precede those of the reader. Before run().
    void begin_with(scratch memory, std::size_t count);

    /// Ends with the body. The response is not flushed, nor ended.
    ///
    /// @par Errors
    /// - Those of the reader but `end_of_stream`, see is_reader_failure().
    /// - Those of response::write_some(), and of sending the head.
    /// - `errc::deadline_exceeded`: the client has held the backend, or the disk that others need,
    ///   for too long, see is_held(). Not if the reader has failed: then its error.
    /// - Those of reading what was stored, see is_lost().
    /// @par Cancellation
    /// What was read and not passed on is lost.
    /// @par Cost
    /// Three coroutines and the blocks' list; a block at a time while the client keeps up.
    [[nodiscard]] task<result<>> run();
    /// Whether run() failed because the reader did, perhaps before the client was cut off.
    [[nodiscard]] bool is_reader_failure() const noexcept { return is_reader_failure_; }
    /// Whether run() failed because the client held the backend, or the disk.
    [[nodiscard]] bool is_held() const noexcept { return is_held_; }
    /// Why nothing more could be stored; run() may have succeeded without.
    [[nodiscard]] std::error_code disk_failure() const noexcept { return disk_failure_; }
    /// Whether run() failed because what was stored could not be read again.
    [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }

private:
    /// Invariant: bytes from `begin` to `end` wait; the reader fills the last block behind `end`.
    struct block {
        scratch memory;
        std::size_t begin = 0;
        std::size_t end = 0;
        std::size_t shared = 0; // bytes that are counted in `in_memory_`
    };

    [[nodiscard]] task<result<>> read();
    /// Memory for the next bytes. Empty: the client has to take something first.
    [[nodiscard]] mutable_buffer room();
    /// `count` bytes were read into room().
    [[nodiscard]] task<result<>> keep(std::size_t count);
    /// Waits until the client has taken something, or for a second.
    [[nodiscard]] task<result<>> wait_for_client();
    /// Ends this answer if it is in the way, or holds the backend, else looks again later.
    void make_room_for_others() noexcept;
    /// What the client has to take in the time of `hold_while_wanted`.
    [[nodiscard]] std::int64_t enough() const noexcept;
    // Both measures of the client.
    void begin_measuring() noexcept;
    void note_offered() noexcept;
    void note_answered() noexcept;
    void note_taken() noexcept;
    /// Grows by what the client acknowledges. That is more than the kernel tells a writer, who
    /// hears of room only when a good part of the buffer is free (tcp(7)). Below zero while earlier
    /// answers wait in the socket. Not measured if the client has no limit.
    [[nodiscard]] std::int64_t acknowledged() const noexcept;
    [[nodiscard]] bool has_held_too_long(ignored_time::time_point now) const noexcept;
    /// Whether the client takes nothing of what is stored while another answer needs the room.
    [[nodiscard]] bool is_in_the_way(ignored_time::time_point now) const noexcept;
    /// How long to wait before looking again.
    [[nodiscard]] std::chrono::nanoseconds
    longest_step(ignored_time::time_point now) const noexcept;
    [[nodiscard]] task<result<>> write();
    /// The block to read into. Null: there may be no more of them.
    [[nodiscard]] block* block_with_room();
    [[nodiscard]] bool has_blocks() const noexcept {
        return !blocks_.empty() && blocks_.front().begin != blocks_.front().end;
    }
    void drop_written() noexcept;

    /// Armed while something is on the disk that others share, and up to a second longer.
    class room_watch final : public simplenet::detail::timer_node {
    public:
        explicit room_watch(read_ahead& of) noexcept
            : of_{of} {}

    private:
        void expired() noexcept override { of_.make_room_for_others(); }
        read_ahead& of_;
    };
    void watch_room() noexcept;
    void look_again() noexcept;

    async_reader_ref from_;
    response& to_;
    const ahead_limits limits_;
    simplenet::detail::scope* scope_ = nullptr; // of run()
    task_group* copying_ = nullptr;             // exists while writes_
    bool writes_ = false;
    bool is_whole_ = false;    // all that was read has been written
    room_share in_memory_;     // of `blocks_`
    std::deque<block> blocks_; // precede what is in the spool
    spool_queue spool_;
    block* into_ = nullptr; // where room() is; null: in the spool
    bool ended_ = false;
    std::uint64_t written_ = 0; // bytes that the kernel has taken
    bool waits_ = false;        // the reader, for room
    bool sends_head_first_ = false;
    bool is_held_ = false;
    bool gives_way_ = false;
    bool is_lost_ = false;
    bool is_reader_failure_ = false;
    ignored_time ignored_;    // for `hold`
    ignored_time slow_;       // for `hold_while_wanted`
    std::error_code failure_; // of the reader
    std::error_code disk_failure_;
    async_event has_bytes_; // or the end has come
    async_event has_room_;
    room_watch watch_{*this};
};

} // namespace simplenet::v0::http::detail
