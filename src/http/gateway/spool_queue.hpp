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
class disk_budget {
public:
    /// @param bytes  In all.
    explicit disk_budget(std::uint64_t bytes) noexcept
        : left_{bytes} {}

    [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
    void give_back(std::uint64_t bytes) noexcept {
        left_.fetch_add(bytes, std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> left_;
};

/// How many answers of the greatest size a handler keeps on the disk.
inline constexpr std::uint64_t large_answers_on_disk = 16;

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
    /// @param shared     Outlives this object. null: `most` is the only bound.
    spool_queue(std::string_view directory, std::uint64_t most, disk_budget* shared) noexcept
        : directory_{directory}
        , most_{most / spool_block * spool_block}
        , shared_{shared} {}
    spool_queue(const spool_queue&) = delete;
    spool_queue& operator=(const spool_queue&) = delete;
    ~spool_queue();

    /// Nothing is stored.
    [[nodiscard]] bool empty() const noexcept { return taken_ == stored_; }

    /// Memory for what put() is to store. Empty: the file or the budget is full, or a put() has
    /// failed.
    [[nodiscard]] mutable_buffer room();
    /// Stores the first `count` bytes of room().
    ///
    /// @par Errors
    /// Those of spool_file::write(); then the bytes are still in room()'s memory, see release().
    [[nodiscard]] task<result<>> put(std::size_t count);
    /// The memory that room() returned.
    [[nodiscard]] scratch release() noexcept { return std::move(on_->in); }

    /// The next bytes, until drop(). @pre not empty().
    ///
    /// @par Errors
    /// Those of spool_file::read().
    [[nodiscard]] task<result<const_buffer>> front();
    /// Takes the first `count` bytes of front().
    void drop(std::size_t count) noexcept { taken_ += count; }

private:
    /// Used by calls on other threads, which the end of the loop does not wait for.
    struct shared_state {
        explicit shared_state(std::string_view directory)
            : file{directory} {}
        spool_file file;
        scratch in;
        scratch out;
    };

    std::string_view directory_;
    const std::uint64_t most_;
    disk_budget* const shared_;
    std::shared_ptr<shared_state> on_; // from the first room() on
    std::uint64_t reserved_ = 0;       // bytes of the budget: the file has been so large
    std::uint64_t stored_ = 0;         // bytes in all; in the file at stored_ % most_
    std::uint64_t taken_ = 0;          // in all
    std::uint64_t loaded_ = 0;         // of them, up to here they are in `out`
    std::size_t out_end_ = 0;          // bytes in `out`
    bool has_failed_ = false;
};

} // namespace simplenet::v0::http::detail
