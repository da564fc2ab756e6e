#pragma once
// spool_queue: bytes on the disk, between a fast backend and a slow client. Layer http, private.

#include "http/gateway/shared_room.hpp"
#include "http/gateway/spool_file.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

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
    /// @param shared     `disk` bounds the file; `memory` tells how much front() loads at once.
    spool_queue(std::string_view directory, std::uint64_t most, answer_room shared)
        : directory_{directory}
        , most_blocks_{most / spool_block}
        , shared_{std::move(shared)} {}
    spool_queue(const spool_queue&) = delete;
    spool_queue& operator=(const spool_queue&) = delete;
    ~spool_queue() = default;

    /// Nothing is stored.
    [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }
    /// Bytes that are stored.
    [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }
    /// What was taken of the shared room.
    [[nodiscard]] std::uint64_t reserved() const noexcept { return on_ ? on_->on_disk.bytes() : 0; }
    /// Whether room() would return some if the disk had more.
    [[nodiscard]] bool lacks_disk() const noexcept {
        return shared_.disk && on_ && !has_failed_ && !is_clearing_ &&
               blocks_in_file_ < most_blocks_;
    }

    /// Memory for what put() is to store. Empty: the file or the disk is full, the file is being
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
    /// There will be no further put(): its memory is given back. @pre No put() goes on.
    void end_puts() noexcept {
        if (on_) on_->in = {};
    }

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
    /// What front() loads at once if there is no memory for a whole block.
    static constexpr std::size_t least_load = std::size_t{16} * 1024;
    static constexpr std::uint64_t worth_clearing = std::uint64_t{1024} * 1024;

    /// Used by calls on other threads, which the end of the loop does not wait for. The disk is
    /// used until the last of them has ended.
    struct shared_state {
        shared_state(std::string_view directory, const answer_room& shared)
            : on_disk{shared.disk}
            , in_memory{shared.memory}
            , file{directory} {}
        room_share on_disk;   // the file has been so large
        room_share in_memory; // held while `out` is a whole block
        spool_file file;
        scratch in;
        scratch out;
    };
    struct stored_block {
        std::uint64_t at; // its number in the file
        std::size_t end;  // bytes that were stored
    };

    /// Memory for front(). Whole blocks need fewer calls on other threads: 1.8 s of the processor
    /// instead of 2.6 s for 400 MB.
    [[nodiscard]] mutable_buffer memory_to_load();
    /// Gives that back if it is large.
    void release_loaded() noexcept;
    /// Whether there is a free block now.
    [[nodiscard]] bool has_free_block();

    std::string_view directory_;
    const std::uint64_t most_blocks_;
    const answer_room shared_;
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
