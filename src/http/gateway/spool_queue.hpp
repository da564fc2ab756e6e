#pragma once
// spool_queue: bytes on the disk, between a fast backend and a slow client. Layer http, private.

#include "http/gateway/spool_file.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/scratch.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {

/// Room on the disk that the answers of a gateway share, on all loops. Any thread.
///
/// No answer gets more than it leaves to others, so that those of clients that never read, however
/// many they are, leave some room to the next one. n answers that all want as much as they can get
/// have 1 / (n + 1) of the room each: A. K. Choudhury and E. L. Hahne, "Dynamic Queue Length
/// Thresholds for Shared-Memory Packet Switches", 1998.
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

private:
    std::atomic<std::uint64_t> left_;
};

/// Room for the answers of a handler: 16 times what one of them may take.
[[nodiscard]] std::shared_ptr<disk_budget> disk_budget_for(std::uint64_t each);

/// First in, first out, in a file that is used as a ring.
///
/// One task puts, another one takes, both on the same loop. The disk is used on the threads of
/// run_blocking().
class spool_queue {
public:
    /// The least room that is offered, but for the end of the ring.
    static constexpr std::size_t least_room = std::size_t{8} * 1024;

    /// @param directory  Borrowed.
    /// @param most       Bytes in the file, a multiple of spool_block. 0: there is never room.
    /// @param budget     null: `most` is the only bound.
    spool_queue(std::string_view directory, std::uint64_t most,
                std::shared_ptr<disk_budget> budget) noexcept
        : directory_{directory}
        , most_{most / spool_block * spool_block}
        , budget_{std::move(budget)} {}
    spool_queue(const spool_queue&) = delete;
    spool_queue& operator=(const spool_queue&) = delete;
    ~spool_queue() = default;

    /// Nothing is stored.
    [[nodiscard]] bool empty() const noexcept { return taken_ == stored_; }
    /// Nothing is stored, but the file is worth a clear().
    [[nodiscard]] bool holds_room_for_nothing() const noexcept {
        return empty() && on_ && on_->reserved >= worth_clearing;
    }
    /// Gives the room on the disk back to the others. A file that cannot be emptied keeps it.
    ///
    /// @pre empty(); no put() goes on.
    [[nodiscard]] task<> clear();

    /// Memory for what put() is to store. Empty: the file or the budget is full, or a put() has
    /// failed.
    [[nodiscard]] mutable_buffer room();
    /// Stores the first `count` bytes of room().
    ///
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
    void drop(std::size_t count) noexcept { taken_ += count; }

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

    std::string_view directory_;
    const std::uint64_t most_;
    const std::shared_ptr<disk_budget> budget_;
    std::shared_ptr<shared_state> on_; // from the first room() on
    std::uint64_t stored_ = 0;         // bytes in all; in the file at stored_ % most_
    std::uint64_t taken_ = 0;          // in all
    std::uint64_t loaded_ = 0;         // of them, up to here they are in `out`
    std::size_t out_end_ = 0;          // bytes in `out`
    bool has_failed_ = false;
};

} // namespace simplenet::v0::http::detail
