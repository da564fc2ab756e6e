#pragma once
// io_queue: a posting_queue with sockets. What operations, sockets and backends know of the loop.
// Layer io, private.

#include "io/backend.hpp"
#include "io/socket_record.hpp"
#include "threads/forks.hpp"
#include "threads/posting_queue.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/io/loop_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace simplenet::v0::detail {

/// Owns the records of its sockets, and the backend that works on them. Loop thread only.
class io_queue : public posting_queue {
public:
    [[nodiscard]] static io_queue& of(run_queue& queue) noexcept {
        return static_cast<io_queue&>(queue);
    }
    /// Of this thread. @pre there is one.
    [[nodiscard]] static io_queue& current() noexcept { return of(run_queue::require_current()); }

    /// A parent process made it: the kernel's side of it, and its connections, are the parent's.
    [[nodiscard]] bool is_inherited() const noexcept { return born_in_ != fork_generation(); }
    [[nodiscard]] backend_driver& driver() const noexcept { return *driver_; }
    [[nodiscard]] receive_pool& pool() const noexcept { return *pool_; }

    // --- sockets ---

    /// A record around `descriptor` for a new handle, bound to no loop yet; from the loop of this
    /// thread if there is one. Throws std::bad_alloc.
    [[nodiscard]] static socket_record& new_record(int descriptor);
    /// Makes `record` this loop's.
    void bind(socket_record& record) noexcept;
    void close(socket_record& record) noexcept;
    /// The same for release(), which takes the descriptor when closed() is over.
    void release(socket_record& record) noexcept;
    /// That release() will not come to take it: it is closed like any other.
    void close_released(socket_record& record) noexcept;
    /// The handle is gone: closes, and frees when everyone else has let go too.
    void drop(socket_record& record) noexcept;
    /// Something has let go of `record`: if it is being closed and nothing else holds its
    /// descriptor, the close ends.
    void advance_close(socket_record& record) noexcept {
        if (!record.is_open()) finish_close(record);
    }
    /// A closed record that nobody holds goes back to the spare ones.
    void free_if_unused(socket_record& record) noexcept;
    /// The same for one of no loop: it goes to the loop of this thread, or is freed.
    static void discard(socket_record& record) noexcept;

    // --- for the backends, while they poll ---

    /// `op` is over: resumes its coroutine in a later turn.
    void complete(operation& op, int error) noexcept;
    /// The same for a read that has what it asked for, of a socket that is not being closed.
    void read_ended(operation& op) noexcept {
        socket_record& of = *op.record;
        of.reader = nullptr;
        op.phase = operation::state::finished;
        touch(of);
        push(op);
    }
    /// There may be something for a waiting `op`: attempts it when its turn comes.
    void attempt_later(operation& op) noexcept {
        op.phase = operation::state::queued;
        push(op);
    }
    /// The same, if `op` waits for something to happen. Null: nobody does.
    void notify(operation* op) noexcept {
        if (op != nullptr && op->phase == operation::state::waiting) attempt_later(*op);
    }
    /// `op` is over: resumes its coroutine in a later turn.
    void complete(readiness_operation& op, int error) noexcept;
    /// `op` was stopped, and the backend has let go of it.
    void give_up(readiness_operation& op) noexcept;
    /// Something moved on `record`, or a read began to wait.
    void touch(socket_record& record) noexcept {
        if (record.idle && !record.idle->touched()) note_touched(*record.idle);
    }

    /// An attempt that moved much: the kernel is asked again in this turn, and what runs at its
    /// start counts for more.
    void worked_long() noexcept {
        spend_inline_turns(inline_turns_per_resume / 4);
        unpolled_ += resumptions_per_poll;
    }

    // --- accepting ---

    /// The kernel had no descriptor or memory for a connection: tries again after a pause, or when
    /// this loop closes a descriptor.
    void pause_accepting(socket_record& listener) noexcept;
    void resume_accepting(socket_record& listener) noexcept;

    /// Counts `op` until it is over.
    void started(readiness_operation& op) noexcept;

protected:
    explicit io_queue(virtual_time* time) noexcept
        : posting_queue{time} {}
    ~io_queue();

    /// From here on `driver` works for this queue.
    void use(std::unique_ptr<backend_driver> driver) noexcept;
    /// Gives the sockets on which something moved in this turn the time of that, and starts their
    /// idle timeouts.
    void stamp_touched(std::chrono::steady_clock::time_point now) noexcept;
    /// An operation or a close is under way.
    [[nodiscard]] bool waits_for_io() const noexcept;
    /// Adds what the records know.
    void count(loop_metrics& into) const noexcept;

    // The end, in this order.

    /// Ends what the backend does by itself, such as receiving ahead.
    void retire_records() noexcept;
    /// And waits until the kernel has let go of everything.
    void drain_kernel() noexcept;
    /// Operations leave their sockets: they are never resumed.
    void abandon_operations() noexcept;
    /// Closes what is open. Handles keep their records.
    void orphan_records() noexcept;

    static constexpr std::size_t resumptions_per_poll = 128;

    std::unique_ptr<backend_driver> driver_;
    std::size_t unpolled_ = 0; // what counts as so many resumptions since the last poll
    std::size_t closing_ = 0;  // records whose close is under way
    intrusive_list<idle_state, touched_tag> touched_; // get their clock reading before the poll

private:
    void close_number(socket_record& record) noexcept;
    void begin_close(socket_record& record, record_state how) noexcept;
    void finish_close(socket_record& record) noexcept;
    void rest(socket_record& record) noexcept;
    void note_touched(idle_state& idle) noexcept;

#ifdef NDEBUG
    static constexpr std::size_t records_at_rest = 256; // 100 KiB
#else
    static constexpr std::size_t records_at_rest = 65'536;
#endif

    receive_pool* pool_ = nullptr; // the driver's
    unsigned born_in_ = fork_generation();
    bool reads_directly_ = false; // see `reading`
    std::size_t live_waits_ = 0;  // for descriptors that belong to somebody else
    std::uint64_t accept_pauses_ = 0;

    intrusive_list<socket_record> records_; // bound to this queue
    // Owned: closed and unheld. An awaitable that outlives its socket still finds it closed: a
    // record rests until so many others were closed after it, and then serves another socket.
    intrusive_list<socket_record> resting_; // oldest first
    std::size_t resting_count_ = 0;
    intrusive_list<socket_record> spare_;              // newest first
    intrusive_list<socket_record, paused_tag> paused_; // listeners without descriptors
};

} // namespace simplenet::v0::detail
