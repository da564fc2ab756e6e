#pragma once
// receiver: receives for the streams of a loop. Layer io_uring, private.
//
// The functions of a round trip are defined here, to be inlined.

#include "io/attempts.hpp"
#include "io/receive_pool.hpp"
#include "io_uring/entries.hpp"
#include "io_uring/poller.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/detail/stream_operations.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace simplenet::v0::detail {

/// Nearly always by one multishot receive per stream, into buffers of the pool that are posted to
/// the kernel. Bytes that arrive before a read wait in the record's `ahead`.
class receiver final : private receive_pool::observer {
public:
    receiver(io_queue& owner, entries& kernel, poller& polls) noexcept
        : queue_{owner}
        , kernel_{kernel}
        , polls_{polls} {}
    receiver(const receiver&) = delete;
    receiver& operator=(const receiver&) = delete;
    ~receiver() {
        if (pool_ != nullptr) pool_->abandon();
    }

    [[nodiscard]] result<> open(const loop_options& options);
    [[nodiscard]] receive_pool& pool() noexcept { return *pool_; }
    [[nodiscard]] uring::buffer_ring& buffers() noexcept { return buffers_; }

    /// Like backend_driver::attempt_read().
    bool attempt(operation& op) noexcept {
        const socket_record& record = *op.record;
        if (record.reads_directly() || record.is_unix_stream()) [[unlikely]]
            return attempt_by_call(op);
        if (op.kind == request::read_some && take_one_buffer(op)) [[likely]] {
            return true;
        }
        return op.kind == request::receive ? take_buffer(static_cast<receive_operation&>(op))
                                           : take_bytes(op);
    }
    /// The reader of `record` waits: makes the kernel receive for it.
    void want(socket_record& record) noexcept;
    /// A completion of the multishot receive.
    void completed(socket_record& record, uring::completion seen) noexcept {
        constexpr unsigned usual = IORING_CQE_F_MORE | IORING_CQE_F_BUFFER;
        if ((seen.flags & usual) != usual || seen.res <= 0 || !record.is_open()) [[unlikely]] {
            return unusual_completed(record, seen);
        }
        --posted_;
        const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
        const auto length = static_cast<std::uint32_t>(seen.res);
        received_ += length;
        operation* const reader = record.reader;
        if (record.ahead.empty() && reader != nullptr &&
            reader->phase == operation::state::waiting && hand_over(*reader, buffer, length)) {
            return;
        }
        record.ahead.push(*pool_, buffer, length);
        record.readable = true;
        queue_.notify(reader);
        if (is_far_ahead(record)) [[unlikely]]
            stop(record);
    }
    /// A completion of an entry of `op` itself.
    void completed(operation& op, uring::completion seen) noexcept;
    /// No entry refers to `op` any more.
    void finish(operation& op) noexcept;

    /// Stops receiving, and drops bytes received ahead unless they are for release().
    void retire(socket_record& record) noexcept;
    /// Like backend_driver::take_ahead().
    void take_ahead(socket_record& record, std::vector<std::byte>& unread);

    void begin_poll() noexcept { received_ = 0; }
    /// Whether more may be received in this poll. Otherwise the readers of the received bytes run
    /// first, before the kernel runs out of buffers, and while the bytes are in the processor's
    /// caches.
    [[nodiscard]] bool has_room_for(std::size_t pieces) const noexcept {
        return posted_ >= pieces && received_ < much_received;
    }

private:
    static constexpr std::uint32_t first_buffers = 64;
    static constexpr std::uint32_t more_buffers = 64;
    static constexpr std::size_t much_received = std::size_t{256} * 1024; // bytes
    static constexpr std::uint32_t large_piece = 8192; // bytes; see read_directly()
    static constexpr std::uint16_t receive_group = 0;
    static constexpr std::uint16_t most_ahead_buffers = 64; // small messages fill few bytes of each

    // --- the multishot receive ---

    void arm(socket_record& record) noexcept;
    void stop(socket_record& record) noexcept {
        kernel_.cancel(record, record.uring.inflow, subject::receive);
    }
    [[gnu::noinline]] void unusual_completed(socket_record& record,
                                             uring::completion seen) noexcept;
    /// Passes received bytes directly to the waiting reader, without queueing them. False: the
    /// reader needs more, or has room for less.
    bool hand_over(operation& reader, std::uint32_t buffer, std::uint32_t length) noexcept {
        if (reader.kind == request::read_some && length <= reader.size) {
            std::memcpy(reader.data, pool_->memory(buffer), length);
            give_back(buffer);
            reader.moved = length;
            if (length >= large_piece) [[unlikely]]
                note_large(*reader.record);
        } else if (reader.kind == request::receive) {
            static_cast<receive_operation&>(reader).hold(buffer, pool_->memory(buffer), length);
        } else {
            return false;
        }
        queue_.read_ended(reader);
        return true;
    }
    [[nodiscard]] bool is_far_ahead(const socket_record& record) const noexcept {
        return record.ahead.bytes() >= read_ahead_ || record.ahead.buffers() >= most_ahead_buffers;
    }
    void give_back_ahead(socket_record& record) noexcept;
    /// Received bytes are dropped: sends the peer a reset, as close(2) does for a socket with
    /// unread bytes; the kernel does not know of ours. Otherwise a peer that waits for room would
    /// wait until the kernel forgets the connection, for a minute (tcp_fin_timeout, tcp(7)).
    static void tell_of_loss(socket_record& record) noexcept;

    // --- attempts that take bytes received ahead ---

    /// The usual read_some(): exactly one buffer was received ahead, and all of it fits.
    bool take_one_buffer(operation& op) noexcept {
        socket_record& record = *op.record;
        if (record.ahead.buffers() != 1 || record.ahead.bytes() > op.size) return false;
        const auto [data, size, emptied] = record.ahead.take(*pool_);
        std::memcpy(op.data, data, size);
        op.moved = size;
        record.readable = record.end != 0;
        give_back(emptied);
        if (size >= large_piece) [[unlikely]]
            note_large(record);
        return true;
    }
    bool take_bytes(operation& op) noexcept;
    bool take_buffer(receive_operation& op) noexcept {
        socket_record& record = *op.record;
        if (record.ahead.empty()) return at_end(op);
        const auto [data, size, emptied] = record.ahead.take(*pool_);
        op.hold(emptied, data, size);
        record.readable = !record.ahead.empty() || record.end != 0;
        return true;
    }
    /// Nothing is ahead: reports the error that follows, or finds nothing.
    bool at_end(operation& op) noexcept;

    // --- without the multishot receive ---

    /// A large piece was copied: the next read that waits will let the following ones be received
    /// directly into its memory. The kernel is not asked yet, because a receive() may come first.
    static void note_large(socket_record& record) noexcept {
        record.reads = reading::large;
        record.receiving = false; // so that it is submitted
    }
    /// The part of want() for a read_some() or async_read_exact() of large pieces, and for every
    /// read while the pool is used up.
    void read_directly(socket_record& record, reading how) noexcept;
    void stop_reading_directly(socket_record& record) noexcept;
    /// Submits a receive of no more than `op` asks for: into the caller's own memory, or, for a
    /// receive(), into a buffer that the kernel takes when data arrives.
    void submit(operation& op) noexcept;
    /// For a record for which the kernel receives nothing ahead: takes what is there now.
    bool attempt_by_call(operation& op) noexcept {
        op.record->readable = true; // unless recv(2) finds nothing
        return receive_by_call(op, *pool_);
    }
    bool attempt_last(operation& op) noexcept;

    // --- buffers ---

    /// Posts an empty buffer to the kernel; unlike receive_pool::give_back().
    void give_back(std::uint32_t buffer) noexcept {
        buffers_.add(pool_->memory(buffer), receive_pool::buffer_size, buffer);
        ++posted_;
    }
    /// A lease has put its buffer on the pool's free list: posts it.
    void buffer_returned() noexcept override { give_back(pool_->claim()); }
    /// Gives the kernel up to `count` free buffers.
    void post_buffers(std::uint32_t count) noexcept;
    /// False: the pool is used up.
    bool kernel_has_buffers() noexcept {
        if (posted_ == 0) post_buffers(more_buffers);
        return posted_ != 0;
    }

    io_queue& queue_;
    entries& kernel_;
    poller& polls_;
    uring::buffer_ring buffers_;
    receive_pool* pool_ = nullptr;
    std::size_t read_ahead_ = 0; // bytes
    std::size_t posted_ = 0;     // buffers that the kernel has
    std::size_t received_ = 0;   // bytes in this poll
};

} // namespace simplenet::v0::detail
