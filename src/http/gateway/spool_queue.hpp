#pragma once
// spool_queue: bytes on the disk, between a fast backend and a slow client. Layer http, private.

#include "http/gateway/spool_file.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/scratch.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

/// Room on the disk that the answers of a gateway share, on all loops. Any thread.
///
/// No answer takes more than it leaves to all others together. So answers that grow at the same
/// time share the room equally, and one that begins later can still have half of what is left:
/// A. K. Choudhury and E. L. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
/// Switches", 1998. What an answer has taken is its own until it ends, or is
/// empty and worth a clear().
class disk_budget {
public:
    /// @param bytes  In all.
    explicit disk_budget(std::uint64_t bytes) noexcept
        : left_{bytes} {}

    /// @param has  What the same answer has taken.
    [[nodiscard]] bool take(std::uint64_t bytes, std::uint64_t has) noexcept;
    void give_back(std::uint64_t bytes) noexcept {
        left_.fetch_add(bytes, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t left() const noexcept {
        return left_.load(std::memory_order_relaxed);
    }

    /// An answer has no room, and others wait for its backend.
    ///
    /// @param has  What it has taken.
    void ask_for_room(std::chrono::steady_clock::time_point now, std::uint64_t has) noexcept {
        // Those that have more ask on behalf of nobody while one with less does.
        if (is_asked_by_less(now, has)) return;
        asker_has_.store(has, std::memory_order_relaxed);
        asked_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    /// Whether one that has less has asked a moment ago, so that this one should end if its client
    /// takes nothing. Else a single large answer could end all others.
    [[nodiscard]] bool is_asked_by_less(std::chrono::steady_clock::time_point now,
                                        std::uint64_t has) const noexcept {
        constexpr std::chrono::seconds moment{2}; // answers that wait ask each second
        const std::chrono::steady_clock::duration at{asked_at_.load(std::memory_order_relaxed)};
        return at != at.zero() && now.time_since_epoch() - at < moment &&
               asker_has_.load(std::memory_order_relaxed) < has;
    }

private:
    std::atomic<std::uint64_t> left_;
    std::atomic<std::chrono::steady_clock::rep> asked_at_ = 0;
    std::atomic<std::uint64_t> asker_has_ = 0;
};

/// First in, first out, in the blocks of a file, each used again once its bytes have been taken.
///
/// One task puts, another one takes, both on the same loop. The disk is used on the threads of
/// run_blocking().
class spool_queue {
public:
    /// Not less is offered, unless there is no further block.
    static constexpr std::size_t least_room = std::size_t{8} * 1024;

    /// @param directory  Borrowed.
    /// @param most       Bytes in the file. Less than spool_block: there is never room.
    /// @param budget     null: `most` is the only bound.
    spool_queue(std::string_view directory, std::uint64_t most, std::shared_ptr<disk_budget> budget)
        : directory_{directory}
        , most_blocks_{most / spool_block}
        , budget_{std::move(budget)} {}
    spool_queue(const spool_queue&) = delete;
    spool_queue& operator=(const spool_queue&) = delete;
    ~spool_queue() = default;

    /// Nothing is stored.
    [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }
    /// Bytes that are stored.
    [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }
    /// What was taken of the budget.
    [[nodiscard]] std::uint64_t reserved() const noexcept { return on_ ? on_->reserved : 0; }
    /// Whether room() would return some if the budget had more.
    [[nodiscard]] bool lacks_budget() const noexcept {
        return budget_ && on_ && !has_failed_ && !is_clearing_ && blocks_in_file_ < most_blocks_;
    }

    /// Memory for what put() is to store. Empty: the file or the budget is full, the file is being
    /// cleared, or a put() has failed.
    [[nodiscard]] mutable_buffer room();
    /// Stores the first `count` bytes of room().
    ///
    /// @pre No clear() goes on.
    /// @par Errors
    /// Those of spool_file::write(), and that no thread can start; then the bytes are still in
    /// room()'s memory, see release().
    [[nodiscard]] task<result<>> put(std::size_t count);
    /// The memory that room() returned.
    [[nodiscard]] scratch release() noexcept { return std::move(on_->in); }

    /// The next bytes, until drop(). @pre not empty().
    ///
    /// @par Errors
    /// Those of spool_file::read(), and that no thread can start.
    [[nodiscard]] task<result<const_buffer>> front();
    /// Takes the first `count` bytes of front().
    void drop(std::size_t count) noexcept;

    /// Whether the file holds nothing, but enough room on the disk for a clear().
    [[nodiscard]] bool is_worth_clearing() const noexcept {
        return empty() && !is_putting_ && !is_clearing_ && !was_not_cleared_ &&
               blocks_in_file_ * spool_block >= worth_clearing;
    }
    /// Gives the room on the disk back. A file that cannot be emptied keeps it.
    ///
    /// @pre is_worth_clearing().
    [[nodiscard]] task<> clear();

private:
    static constexpr std::uint64_t worth_clearing = std::uint64_t{1024} * 1024;

    /// Used by calls on other threads, which the end of the loop does not wait for. The disk is
    /// used until the last of them has ended.
    struct shared_state {
        shared_state(std::string_view directory, std::shared_ptr<disk_budget> shared)
            : file{directory}
            , budget{std::move(shared)} {}
        shared_state(const shared_state&) = delete;
        shared_state& operator=(const shared_state&) = delete;
        ~shared_state() {
            if (budget) budget->give_back(reserved);
        }
        spool_file file;
        scratch in;
        scratch out;
        const std::shared_ptr<disk_budget> budget;
        std::uint64_t reserved = 0; // bytes of the budget: the file has been so large
    };
    struct stored_block {
        std::uint64_t at; // its number in the file
        std::size_t end;  // bytes that were stored
    };

    /// Whether there is a free block now.
    [[nodiscard]] bool has_free_block();

    std::string_view directory_;
    const std::uint64_t most_blocks_;
    const std::shared_ptr<disk_budget> budget_;
    std::shared_ptr<shared_state> on_; // from the first room() on
    std::uint64_t blocks_in_file_ = 0;
    std::vector<std::uint64_t> free_; // blocks of the file, with capacity for all
    std::deque<stored_block> stored_;
    std::uint64_t bytes_ = 0;      // that are stored
    std::size_t taken_ = 0;        // bytes of the first block
    std::size_t loaded_begin_ = 0; // of the first block, in `out`
    std::size_t loaded_end_ = 0;
    bool appends_ = false; // room() is the rest of the last block, which therefore stays
    bool is_putting_ = false;
    bool is_clearing_ = false;
    bool was_not_cleared_ = false;
    bool has_failed_ = false;
};

} // namespace simplenet::v0::http::detail
