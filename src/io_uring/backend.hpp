#pragma once
// The io_uring backend: what has to wait is a completion, one io_uring_enter a turn submits, waits
// and times out. Layer io_uring, private.
//
// Here is what a round trip runs through, to be inlined; the rest is in uring_backend.cpp (the
// turn), uring_backend_operations.cpp, uring_backend_receiving.cpp and uring_backend_accepting.cpp.
// Only the files uring_backend* know liburing.

#include "io/backend.hpp"
#include "io/io_queue.hpp"
#include "io/receive_pool.hpp"
#include "io_uring/ring.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/detail/accept_operation.hpp>
#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/io/readiness.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {

// What a completion is about, in the low bits of its user_data; the rest is a pointer.
enum class subject : std::uintptr_t {
    operation,        // the operation itself
    operation_cancel, // a cancel that names it
    receive,          // a record's multishot receive
    accept,           // a record's multishot accept
    record_cancel,    // a cancel that names one of these, or the next
    edges,            // a record's multishot poll
    wake_up,          // the eventfd
    wait,             // a wait for readiness, or a cancel that names it
};
inline constexpr std::uintptr_t subject_mask = 7;

inline std::uint64_t tagged(const void* pointer, subject about) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uintptr_t>(about);
}

class uring_backend final : public backend_driver, private receive_pool::listener {
public:
    explicit uring_backend(io_queue& owner) noexcept
        : queue_{owner} {}
    ~uring_backend() override {
        if (pool_ != nullptr) pool_->abandon();
    }

    result<> open(const loop_options& options);
    bool attempt_read(operation& op) noexcept override;
    // Not tried first: a second connect(2) for the same connection would say EALREADY.
    bool attempt_connect(connect_operation&) noexcept override { return false; }
    void submit(operation& op) noexcept override;
    void cancel(operation& op, stop_reason reason) noexcept override;
    void limit_passed() noexcept override { last_attempts_ = true; }
    void submit(readiness_operation& op) noexcept override;
    void cancel(readiness_operation& op) noexcept override;
    void retire(socket_record& record) noexcept override;
    void let_go(const socket_record& record) noexcept override;
    void take_ahead(socket_record& record, std::vector<std::byte>& unread) override;
    std::size_t catch_up() noexcept override;
    std::size_t poll(std::chrono::nanoseconds timeout) noexcept override;
    void wake() noexcept override;
    void announce() noexcept override { sys::signal_eventfd(embed_.get()); }

    int native_handle() noexcept override;

    bool busy() const noexcept override { return references_ != 0; }
    backend kind() const noexcept override { return backend::io_uring; }
    receive_pool& pool() noexcept override { return *pool_; }

private:
    static constexpr std::uint32_t first_buffers = 64;
    static constexpr std::uint32_t more_buffers = 64;
    static constexpr std::size_t much_received = std::size_t{256} * 1024; // bytes
    static constexpr std::uint32_t large_piece = 8192; // bytes; see read_directly()
    static constexpr std::uint16_t receive_group = 0;
    static constexpr std::size_t most_rounds = 64;
    static constexpr std::size_t kernel_pass = 20; // pieces of deferred work at a time, since 6.13
    static constexpr std::uint16_t most_ahead_buffers = 64; // small messages fill few bytes of each

    // --- the ring ---

    /// At the first poll, or before it if the first turn fills the queue.
    void enable() noexcept;
    void watch_wake_ups() noexcept;
    void enter(unsigned wait_for, const std::chrono::nanoseconds* timeout) noexcept;
    [[gnu::cold]] static void check_entered(int outcome) noexcept;

    /// Room for one more entry, made by submitting the others if need be.
    io_uring_sqe& next_entry() noexcept;

    /// The kernel takes no entry before its completions are reaped, and somebody up the stack may
    /// be dispatching one: they wait for reap(), in order.
    void set_aside() noexcept;
    std::size_t reap() noexcept;
    [[nodiscard]] bool is_to_be_asked_again() const noexcept {
        return ((posted_ >= kernel_pass && received_ < much_received) || last_attempts_) &&
               ring_.kernel_has_more();
    }
    [[gnu::noinline]] std::size_t ask_again() noexcept;
    [[gnu::cold]] uring::completion take_aside() noexcept;
    void dispatch(uring::completion seen) noexcept;
    void dispatch_any(subject about, void* pointer, uring::completion seen) noexcept;

    void hold(socket_record& record) noexcept {
        ++record.kernel_references;
        ++references_;
    }
    void released(socket_record& record) noexcept {
        --record.kernel_references;
        --references_;
        queue_.advance_close(record);
    }

    // --- operations that the kernel works on ---

    io_uring_sqe& entry_for(operation& op) noexcept {
        io_uring_sqe& entry = next_entry();
        ++op.kernel_references;
        hold(*op.record);
        return entry;
    }

    io_uring_sqe& entry_for(readiness_operation& op) noexcept {
        io_uring_sqe& entry = next_entry();
        ++op.kernel_references;
        ++references_;
        return entry;
    }

    /// Of the wait itself or of its cancel, which says 0, ENOENT or EALREADY as no wait does.
    void wait_completed(readiness_operation& op, int outcome) noexcept;
    void submit_send(write_operation& op) noexcept;
    void submit_connect(connect_operation& op) noexcept;

    /// A receive of no more than `op` asks for: into the caller's own memory, or a receive() into a
    /// buffer that the kernel takes when there is something. A receive() that the kernel has no
    /// buffer for waits until there is something, and takes memory then.
    void submit_receive(operation& op) noexcept;

    /// For what no entry can do, or does better (docs/development/decisions/0014): to be attempted
    /// when the socket is ready.
    void submit_poll(operation& op, unsigned events) noexcept;
    /// Of a socket that polls as one with an error, which an error queue that nobody reads does
    /// (recvmsg(2)): a poll is over at once, each time. What it says from here on are changes.
    void watch_edges(socket_record& record) noexcept;
    void edge_completed(socket_record& record, uring::completion seen) noexcept;
    void submit_cancel(operation& op) noexcept;
    void cancel_completed(operation& op, int outcome) noexcept;
    void operation_completed(operation& op, uring::completion seen) noexcept;

    /// One entry less names `op`. When none does, the kernel has forgotten it and its buffer.
    void released(operation& op) noexcept;
    void finish(operation& op) noexcept;
    void poll_finished(operation& op) noexcept;
    void connect_taken_back(operation& op) noexcept;
    void submit_again(operation& op) noexcept;
    static int connected(socket_record& record) noexcept;

    // --- receiving ---

    /// A read waits on `record`: sees to it that the kernel receives for it.
    void want_receive(socket_record& record) noexcept;
    void arm_receive(socket_record& record) noexcept;

    /// What was received is dropped: the peer is sent a reset, as by close(2) of a socket with
    /// bytes unread, of which the kernel knows none. A peer that waits for room would otherwise
    /// wait until the last of the connection is forgotten, for a minute (tcp_fin_timeout, tcp(7)).
    static void tell_of_loss(socket_record& record) noexcept;

    /// Stops what the kernel receives or accepts for `record` by itself.
    void disarm(socket_record& record) noexcept;
    void cancel(socket_record& record, multishot& entry, subject about) noexcept;
    void cancel_again(socket_record& record, multishot& entry, subject about) noexcept;
    void record_cancel_completed(socket_record& record, int outcome) noexcept;
    static subject inflow_of(const socket_record& record) noexcept {
        return record.kind == record_kind::listener ? subject::accept : subject::receive;
    }

    void receive_completed(socket_record& record, uring::completion seen) noexcept {
        constexpr unsigned usual = IORING_CQE_F_MORE | IORING_CQE_F_BUFFER;
        if ((seen.flags & usual) != usual || seen.res <= 0 || !record.is_open()) [[unlikely]] {
            return unusual_receive_completed(record, seen);
        }
        --posted_;
        const std::uint32_t buffer = seen.flags >> IORING_CQE_BUFFER_SHIFT;
        const auto length = static_cast<std::uint32_t>(seen.res);
        received_ += length;
        if (record.ahead.empty() && is_waiting(record.reader) &&
            hand_over(*record.reader, buffer, length)) {
            return;
        }
        record.ahead.push(*pool_, buffer, length);
        record.readable = true;
        notify(record);
        if (is_far_ahead(record)) [[unlikely]]
            disarm(record);
    }
    /// A large piece was copied: the next ones are better received where they belong, which the
    /// next read that waits for one sees to. Nothing is asked of the kernel yet: a receive() may
    /// come first.
    static void note_large(socket_record& record) noexcept {
        record.reads = reading::large;
        record.receiving = false; // so that it is submitted
    }
    /// What want_receive() does for a read_some() or async_read_exact() of large pieces, and for
    /// every read while the pool is used up.
    void read_directly(socket_record& record, reading how) noexcept;
    void stop_reading_directly(socket_record& record) noexcept;
    bool attempt_directly(operation& op) noexcept;
    /// Of the first bytes of a stream whose reader waits: they need not be queued for it. False:
    /// they are not all that it takes, or more than it does.
    bool hand_over(operation& reader, std::uint32_t buffer, std::uint32_t length) noexcept {
        if (reader.kind == request::read_some && length <= reader.size) {
            std::memcpy(reader.data, pool_->memory(buffer), length);
            give_back(buffer);
            if (length >= large_piece) [[unlikely]]
                note_large(*reader.record);
        } else if (reader.kind == request::receive) {
            static_cast<receive_operation&>(reader).buffer = buffer;
            reader.data = pool_->memory(buffer);
        } else {
            return false;
        }
        reader.moved = length;
        queue_.read_ended(reader);
        return true;
    }
    [[nodiscard]] bool is_far_ahead(const socket_record& record) const noexcept {
        return record.ahead.bytes() >= read_ahead_ || record.ahead.buffers() >= most_ahead_buffers;
    }

    [[gnu::noinline]] void unusual_receive_completed(socket_record& record,
                                                     uring::completion seen) noexcept;

    static bool is_waiting(const operation* op) noexcept {
        return op != nullptr && op->phase == operation::state::waiting &&
               op->kernel_references == 0;
    }
    void notify(socket_record& record) noexcept {
        if (is_waiting(record.reader)) queue_.attempt_later(*record.reader);
    }
    void notify_writer(socket_record& record) noexcept {
        if (is_waiting(record.writer)) queue_.attempt_later(*record.writer);
    }

    /// Of a record for which the kernel receives nothing: what is there now.
    bool attempt_direct(operation& op) noexcept;
    bool attempt_receive(operation& op) noexcept;
    bool attempt_last(operation& op) noexcept;

    void drop_ahead(socket_record& record) noexcept;
    void give_back_ahead(socket_record& record) noexcept;

    /// The end of what was received ahead: the error behind it, or nothing yet.
    bool at_end(operation& op) noexcept;

    /// What nearly every read_some() is: all of one buffer fits, and nothing is behind it.
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
        op.buffer = emptied;
        op.data = data;
        op.moved = size;
        record.readable = !record.ahead.empty() || record.end != 0;
        return true;
    }

    // --- buffers ---

    /// The buffer is empty: the kernel may have it.
    void give_back(std::uint32_t buffer) noexcept {
        buffers_.add(pool_->memory(buffer), receive_pool::buffer_size, buffer);
        ++posted_;
    }
    void buffer_returned() noexcept override { give_back(pool_->claim()); }
    /// Gives the kernel up to `count` free buffers.
    void post_buffers(std::uint32_t count) noexcept;
    /// False: the pool is used up.
    bool kernel_has_buffers() noexcept {
        if (posted_ == 0) post_buffers(more_buffers);
        return posted_ != 0;
    }
    /// The kernel had no buffer for a receive. Many receives may be refused at once: post one
    /// buffer for each of them, and some to spare.
    void grow() noexcept {
        if (kernel_has_buffers()) post_buffers(1);
    }

    // --- accepting ---

    void submit_accept(operation& op) noexcept;
    void accept_ahead(socket_record& record, int connection) noexcept;
    void accept_completed(socket_record& record, uring::completion seen) noexcept;
    bool accept_one(accept_base& op) noexcept;
    static void drop_connections(socket_record& record) noexcept;

    io_queue& queue_;
    uring::buffer_ring buffers_; // outlives the ring, which uses it
    uring::ring ring_;
    receive_pool* pool_ = nullptr;
    unique_fd wake_;
    unique_fd embed_;              // readable when a completion is due; only for native_handle()
    std::atomic<int> handle_ = -1; // the same, for wake()
    bool enabled_ = false;
    std::size_t read_ahead_ = 0; // bytes
    std::size_t posted_ = 0;     // buffers that the kernel has
    std::size_t received_ = 0;   // bytes in this poll
    // A limit has passed since the last poll: what the kernel has by then counts, all of it.
    bool last_attempts_ = false;
    std::size_t references_ = 0; // entries in the kernel that name an operation or a record
    std::vector<uring::completion> aside_; // reaped where they could not be dispatched
    std::size_t aside_next_ = 0;
};

} // namespace simplenet::v0::detail
