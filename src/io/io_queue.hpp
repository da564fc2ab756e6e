#pragma once
// io_queue: a posting_queue with sockets; the part of the loop that operations, sockets and
// backends know. Layer io, private.

#include "io/backend.hpp"
#include "io/event_hook.hpp"
#include "io/socket_record.hpp"
#include "threads/forks.hpp"
#include "threads/posting_queue.hpp"

#include <simplenet/core/detail/figure.hpp>
#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/io/loop_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simplenet::v0::detail {

struct shortage_tag;

/// Told when a listener of its loop finds no descriptor or memory for a connection, until it is
/// unlinked. The loop may be polling: nothing may be stopped or resumed.
class shortage_observer : public list_hook<shortage_tag> {
public:
    virtual void accepting_pauses() noexcept = 0;

protected:
    shortage_observer() noexcept = default;
    ~shortage_observer() = default;
};

/// Owns the records of its sockets, and the backend that works on them. Loop thread only.
class io_queue : public posting_queue {
public:
    [[nodiscard]] static io_queue& of(run_queue& queue) noexcept {
        return static_cast<io_queue&>(queue);
    }
    /// The queue of this thread. @pre a loop runs.
    [[nodiscard]] static io_queue& current() noexcept { return of(run_queue::require_current()); }

    /// Whether a parent process created it: its kernel objects and connections are the parent's.
    [[nodiscard]] bool is_inherited() const noexcept { return born_in_ != fork_generation(); }
    [[nodiscard]] backend_driver& driver() const noexcept { return *driver_; }
    [[nodiscard]] receive_pool& pool() const noexcept { return *pool_; }

    // --- sockets ---

    /// A record around `descriptor` for a new handle, not yet bound to a loop. Reuses a spare
    /// record of this thread's loop, if any. Throws std::bad_alloc.
    [[nodiscard]] static socket_record& new_record(int descriptor);
    /// Binds `record` to this loop.
    void bind(socket_record& record) noexcept;
    void close(socket_record& record) noexcept;
    /// Like close(), for a release(): keeps the descriptor, which the caller takes after closed().
    /// Otherwise drop() closes it.
    /// @pre `record` is open.
    void release(socket_record& record) noexcept;
    /// Moves the bytes that were received and not read to the end of `unread`, for a record that is
    /// being released.
    static void take_unread(socket_record& record, std::vector<std::byte>& unread);
    /// Before a close that drops bytes brought along: resets the connection.
    static void drop_brought(socket_record& record) noexcept;
    /// The handle is gone: closes, and frees the record once nothing else refers to it.
    void drop(socket_record& record) noexcept;
    /// Called when something lets go of `record`. If the record is being closed and nothing else
    /// holds its descriptor, the close ends.
    void advance_close(socket_record& record) noexcept {
        if (!record.is_open()) finish_close(record);
    }
    /// Makes a closed record without references a spare one.
    void free_if_unused(socket_record& record) noexcept;
    /// The same for a record without a loop: gives it to the loop of this thread, or frees it.
    static void discard(socket_record& record) noexcept;

    // --- for the backends, while they poll ---

    /// `op` is over: resumes its coroutine in a later turn.
    void complete(operation& op, int error) noexcept;
    /// The same for a successful read on a socket that is not being closed.
    void read_ended(operation& op) noexcept {
        socket_record& of = *op.record;
        of.reader = nullptr;
        op.phase = operation::state::finished;
        operation_ended();
        touch(of);
        push(op);
    }
    /// A waiting `op` may succeed now: attempts it when its turn comes.
    void attempt_later(operation& op) noexcept {
        op.phase = operation::state::queued;
        push(op);
    }
    /// The same, if `op` waits for an event. Null: no operation waits.
    void notify(operation* op) noexcept {
        if (op != nullptr && op->phase == operation::state::waiting) attempt_later(*op);
    }
    /// `op` is over: resumes its coroutine in a later turn.
    void complete(readiness_operation& op, int error) noexcept;
    /// `op` was stopped, and the backend no longer refers to it.
    void give_up(readiness_operation& op) noexcept;
    /// Bytes moved on `record`, or a read began to wait.
    void touch(socket_record& record) noexcept {
        if (record.idle && !record.idle->touched()) note_touched(*record.idle);
    }

    /// Called after an attempt that moved many bytes: makes the loop poll in this turn, and uses up
    /// some of the coroutine's inline turns.
    void worked_long() noexcept {
        spend_inline_turns(inline_turns_per_resume / 4);
        unpolled_ += resumptions_per_poll;
    }

    // --- accepting ---

    /// The kernel had no descriptor or memory for a connection, which `error` tells: retries after
    /// a pause, or when this loop closes a descriptor.
    void pause_accepting(socket_record& listener, int error) noexcept;
    void resume_accepting(socket_record& listener) noexcept;
    void tell_of_shortage(shortage_observer& observer) noexcept {
        shortage_observers_.push_back(observer);
    }

    event_hook on_event;

    /// Counts an operation that waits, until it is over.
    void operation_began() noexcept { ++live_operations_; }
    void operation_ended() noexcept { --live_operations_; }

protected:
    explicit io_queue(virtual_time* time) noexcept
        : posting_queue{time} {}
    ~io_queue();

    /// Sets the backend of this queue.
    void use(std::unique_ptr<backend_driver> driver) noexcept;
    /// Stamps the sockets on which bytes moved in this turn with `now`, and starts their idle
    /// timeouts.
    void stamp_touched(std::chrono::steady_clock::time_point now) noexcept;
    /// Whether an operation or a close is in progress.
    [[nodiscard]] bool waits_for_io() const noexcept {
        return live_operations_.own() + live_lookups_.own() != 0 || closing_ != 0;
    }
    /// Adds the figures that are kept here. Any thread, as long as the backend exists.
    void add_figures(loop_metrics& into) const noexcept;

    // The end, in this order.

    /// Ends the work that the backend does on its own, such as receiving ahead.
    void retire_records() noexcept;
    /// Waits until the kernel refers to nothing of ours.
    void drain_kernel() noexcept;
    /// Operations leave their sockets: they are never resumed.
    void abandon_operations() noexcept;
    /// Closes open sockets. Handles keep their records.
    void orphan_records() noexcept;

    static constexpr std::size_t resumptions_per_poll = 128;

    std::unique_ptr<backend_driver> driver_;
    std::size_t unpolled_ = 0;                        // work since the last poll, in resumptions
    std::size_t closing_ = 0;                         // records whose close is in progress
    intrusive_list<idle_state, touched_tag> touched_; // stamped with the time before the poll

private:
    void close_number(socket_record& record) noexcept;
    void begin_close(socket_record& record, record_state how) noexcept;
    void finish_close(socket_record& record) noexcept;
    void close_released(socket_record& record) noexcept;
    void rest(socket_record& record) noexcept;
    void note_touched(idle_state& idle) noexcept;

#ifdef NDEBUG
    static constexpr std::size_t records_at_rest = 256; // 100 KiB
#else
    static constexpr std::size_t records_at_rest = 65'536;
#endif

    receive_pool* pool_ = nullptr; // the driver's
    unsigned born_in_ = fork_generation();
    bool reads_directly_ = false;         // see `reading`
    figure<std::size_t> live_operations_; // of sockets, and waits for other descriptors
    figure<std::size_t> open_records_;    // bound to this queue; their close has not ended
    figure<std::uint64_t> accept_pauses_;

    intrusive_list<socket_record> records_; // bound to this queue
    // Owned: closed, and without a handle. An awaitable that outlives its socket still finds the
    // record closed: a record rests until `records_at_rest` others were closed after it, and then
    // serves another socket.
    intrusive_list<socket_record> resting_; // oldest first
    std::size_t resting_count_ = 0;
    intrusive_list<socket_record> spare_;              // newest first
    intrusive_list<socket_record, paused_tag> paused_; // listeners without descriptors
    intrusive_list<shortage_observer, shortage_tag> shortage_observers_;
};

} // namespace simplenet::v0::detail
