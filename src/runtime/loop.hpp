#pragma once
// loop: the event loop behind event_loop, written once for both backends. Layer runtime, private.

#include "runtime/backend_driver.hpp"
#include "runtime/dump_signal.hpp"
#include "runtime/forks.hpp"
#include "runtime/inbox.hpp"
#include "runtime/io_record.hpp"
#include "runtime/watchdog.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/runtime/timed_queue.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace simplenet::inline v0::detail {

class loop final : public timed_queue {
public:
    using clock = std::chrono::steady_clock;
    using nanoseconds = std::chrono::nanoseconds;

    [[nodiscard]] static result<std::unique_ptr<loop>> create(const loop_options& options);
    explicit loop(const loop_options& options) noexcept
        : timed_queue{options.clock}
        , options_{options} {
        on_unhandled = options.on_unhandled;
        note_clock(now());
    }
    ~loop();

    // --- event_loop ---

    /// Stops every task and runs on until they have ended; what is left is only to be freed. The
    /// owner is whole meanwhile, as tasks may use it.
    void tear_down() noexcept;

    /// A parent process made it: the kernel's side of it, and its connections, are the parent's.
    [[nodiscard]] bool is_inherited() const noexcept { return born_in_ != fork_generation(); }
    /// This is a child, in the middle of a turn: it is not to get to the next poll.
    void forked() noexcept {
        forked_ = true;
        timers.look_now(); // a turn that has no due timer pays for no check
    }

    void run();
    bool run_for(nanoseconds limit);
    std::size_t poll();
    void stop() noexcept;             // any thread
    void post(posted& item) noexcept; // any thread
    /// post() in two parts. True: wake_for_post() is to follow; the loop does not end before it.
    [[nodiscard]] bool post_asleep(posted& item) noexcept; // any thread
    void wake_for_post() noexcept;                         // any thread
    [[nodiscard]] int native_handle() noexcept;
    [[nodiscard]] std::optional<clock::time_point> next_timer() const;
    [[nodiscard]] loop_metrics metrics() const;
    /// Appends what dump_tasks() prints.
    void describe(std::string& text);
    [[nodiscard]] backend_driver& driver() const noexcept { return *driver_; }
    [[nodiscard]] receive_pool& pool() const noexcept { return *pool_; }
    [[nodiscard]] const loop_options& options() const noexcept { return options_; }

    event_loop* facade = nullptr; // the owner, while it runs
    loop_pulse pulse;             // for the watchdog
    /// It sleeps, or is about to; or it was woken and has not noticed. Any thread.
    [[nodiscard]] bool is_parked() const noexcept { return inbox_.is_parked(); }

    // --- sockets ---

    /// A record around `descriptor` for a new handle, bound to no loop yet; from the loop of this
    /// thread if there is one. Throws std::bad_alloc.
    [[nodiscard]] static io_record& new_record(int descriptor);
    /// Makes `record` this loop's.
    void bind(io_record& record) noexcept;
    void close(io_record& record) noexcept;
    /// The handle is gone: closes, and frees when everyone else has let go too.
    void drop(io_record& record) noexcept;
    /// The end of a close, if nothing holds the descriptor any more.
    void settle(io_record& record) noexcept {
        if (record.closing) finish_close(record);
    }
    /// A closed record that nobody holds goes back to the spare ones.
    void free_if_unused(io_record& record) noexcept;
    /// The same for one of no loop: it goes to the loop of this thread, or is freed.
    static void discard(io_record& record) noexcept;

    // --- for the backends, while they poll ---

    /// `op` is over: resumes its coroutine in a later turn.
    void complete(operation& op, int error) noexcept;
    /// The same for a read that has what it asked for, of a socket that is not being closed.
    void read_ended(operation& op) noexcept {
        io_record& of = *op.record;
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
    /// `op` is over: resumes its coroutine in a later turn.
    void complete(readiness_operation& op, int error) noexcept;
    /// `op` was stopped, and the backend has let go of it.
    void give_up(readiness_operation& op) noexcept;
    /// Something moved on `record`, or a read began to wait.
    void touch(io_record& record) noexcept {
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
    void pause_accepting(io_record& listener) noexcept;
    void resume_accepting(io_record& listener) noexcept;

    /// Counts `op` until it is over.
    void started(readiness_operation& op) noexcept;

    // --- names ---

    /// A task waits for the answer to a question, or does no more.
    void lookup_began() noexcept { ++live_lookups_; }
    void lookup_ended() noexcept { --live_lookups_; }

    /// For a spawn on this thread.
    [[nodiscard]] run_queue& spawning_queue() noexcept;

private:
    /// Another thread is in here: the destructor waits for it.
    class caller {
    public:
        explicit caller(std::atomic<unsigned>& count) noexcept
            : count_{count} {
            count_.fetch_add(1, std::memory_order_relaxed);
        }
        caller(const caller&) = delete;
        caller& operator=(const caller&) = delete;
        ~caller() { count_.fetch_sub(1, std::memory_order_release); }

    private:
        std::atomic<unsigned>& count_;
    };

    std::size_t make_turn(nanoseconds limit, bool& out_of_work);
    std::size_t turn(nanoseconds limit);
    [[gnu::noinline]] void run_on() noexcept;
    struct tended {
        nanoseconds wait;     // how long the loop may wait
        std::size_t done = 0; // timers that fired, or events
    };
    /// Fires what is due.
    [[nodiscard]] tended tend_timers(nanoseconds limit) noexcept;
    [[nodiscard, gnu::noinline]] tended tend_due_timers(nanoseconds limit,
                                                        clock::time_point present) noexcept;
    [[nodiscard]] nanoseconds until_soonest(nanoseconds limit,
                                            clock::time_point present) const noexcept;
    [[nodiscard]] bool was_away(clock::time_point present) const noexcept;
    std::size_t sleep(nanoseconds limit) noexcept;
    [[gnu::noinline]] std::size_t fire_after_wait() noexcept;
    [[gnu::noinline]] std::size_t wait_busily(nanoseconds limit) noexcept;
    [[gnu::noinline]] std::size_t sleep_in_virtual_time(nanoseconds limit) noexcept;
    clock::time_point note_clock(clock::time_point now) noexcept {
        clock_ns = now.time_since_epoch().count();
        return now;
    }
    std::size_t wait_in_virtual_time(nanoseconds limit);
    [[nodiscard]] bool waits_for_io() const noexcept;
    std::size_t take_posted() noexcept;
    void settle_touched(clock::time_point now) noexcept;
    [[nodiscard]] bool has_work() const noexcept;
    [[nodiscard]] bool consume_stop() noexcept;
    void announce_work() noexcept;
    void claim_thread() noexcept;
    void enter_thread();
    [[noreturn]] static void complain_of_fork() noexcept;
    void begin_watch();

    /// For the watchdog: the loop turns, or should.
    class active {
    public:
        explicit active(loop& of) noexcept
            : of_{of}
            , queue_{of} {
            of_.pulse.active.store(true, std::memory_order_relaxed);
        }
        active(const active&) = delete;
        active& operator=(const active&) = delete;
        ~active() { of_.pulse.active.store(false, std::memory_order_relaxed); }

    private:
        loop& of_;
        activation queue_;
    };

    void close_number(io_record& record) noexcept;
    void finish_close(io_record& record) noexcept;
    void rest(io_record& record) noexcept;
    void note_touched(idle_state& idle) noexcept;

    void retire_records() noexcept;
    void drain_kernel() noexcept;
    void orphan_records() noexcept;

    loop_options options_;
    std::unique_ptr<backend_driver> driver_;
    receive_pool* pool_ = nullptr; // the driver's
    inbox inbox_;
    std::atomic<unsigned> callers_ = 0; // of stop() and post(), at the moment
    std::atomic<bool> stop_requested_ = false;
    std::atomic<std::uint64_t> wake_ups_ = 0;
    std::thread::id thread_; // of the first run
    unsigned born_in_ = fork_generation();
    bool forked_ = false;          // in this turn
    std::uint8_t catching_up_ = 0; // turns in which timers may still wait for what came in a pause
    bool embedded_ = false;        // native_handle() was asked for
    bool watched_ = false;         // by the watchdog
    bool reads_directly_ = false;  // see `reading`
    dump_signal dump_signal_{*this};

#ifdef NDEBUG
    static constexpr std::size_t records_at_rest = 256; // 100 KiB
#else
    static constexpr std::size_t records_at_rest = 65'536;
#endif
    static constexpr std::size_t resumptions_per_poll = 128;
    static constexpr std::size_t busy_turns_polled = 64;

    std::size_t unpolled_ = 0;   // what counts as so many resumptions since the last poll
    std::size_t busy_turns_ = 0; // since the loop slept, up to busy_turns_polled
    // Neither busy_poll nor virtual time.
    const bool sleeps_plainly_ = time_ == nullptr && options_.busy_poll <= nanoseconds::zero();
    std::uint8_t short_waits_ = 0; // one bit for each of the last eight: at most busy_poll long
    std::uint64_t completions_ = 0;
    std::uint64_t accept_pauses_ = 0;
    std::size_t closing_ = 0;      // records whose close is under way
    std::size_t live_waits_ = 0;   // for descriptors that belong to somebody else
    std::size_t live_lookups_ = 0; // of names, by other threads

    intrusive_list<io_record> records_; // bound to this loop
    // Owned: closed and unheld. An awaitable that outlives its socket still finds it closed: a
    // record rests until so many others were closed after it, and then serves another socket.
    intrusive_list<io_record> resting_; // oldest first
    std::size_t resting_count_ = 0;
    intrusive_list<io_record> spare_;                 // newest first
    intrusive_list<idle_state, touched_tag> touched_; // get their clock reading before the poll
    intrusive_list<io_record, paused_tag> paused_;    // listeners without descriptors
};

void print_to_standard_error(std::string_view text) noexcept;

/// The loop of this thread. @pre there is one.
[[nodiscard]] inline loop& current_loop() noexcept {
    return static_cast<loop&>(run_queue::require_current());
}

} // namespace simplenet::inline v0::detail
