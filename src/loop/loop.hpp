#pragma once
// loop: the event loop behind event_loop, written once for both backends. Layer loop, private.

#include "io/io_queue.hpp"

#include <simplenet/core/detail/figure.hpp>
#include <simplenet/io/loop_options.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace simplenet::v0 {
inline namespace runtime {
class event_loop;
} // namespace runtime
} // namespace simplenet::v0

namespace simplenet::v0::detail {

/// The state of a loop that other threads may read. The loop only makes relaxed stores and never
/// waits.
struct loop_pulse {
    figure<std::uint64_t> turns;
    figure<std::uint64_t> completions;
    std::atomic<bool> active = false; // inside run(), run_for() or poll(), and not waiting
    std::atomic<std::uint64_t> stalls = 0;

    // As of publish(): numbers of the thread, or made from one.
    figure<std::size_t> timers;
    figure<std::ptrdiff_t> live_frames;
};

class loop : public io_queue {
public:
    using clock = std::chrono::steady_clock;
    using nanoseconds = std::chrono::nanoseconds;

    explicit loop(const loop_options& options) noexcept
        : io_queue{options.clock}
        , options_{options} {
        on_unhandled = options.on_unhandled;
        on_event = event_hook{options};
        note_clock(now());
    }
    ~loop() { tear_down(); }

    using io_queue::use;

    // --- event_loop ---

    /// Stops every task and runs until all have ended; after that only memory remains to be freed.
    /// The owner still exists meanwhile, because tasks may use it.
    void tear_down() noexcept;

    void run();
    bool run_for(nanoseconds limit);
    std::size_t poll();
    void stop() noexcept; // any thread
    [[nodiscard]] int native_handle() noexcept;
    [[nodiscard]] std::optional<clock::time_point> next_timer() const;
    [[nodiscard]] loop_metrics metrics() const;
    /// The same for any thread, until tear_down(). Timers and frames are those of the last
    /// publish(): at most a turn old after observe(), and the present ones if the loop sleeps.
    [[nodiscard]] loop_metrics published_metrics() const noexcept;
    /// From here on every turn that has work publishes before it polls; the call wakes a loop that
    /// sleeps.
    /// Otherwise only the end of run(), run_for() and poll() has one. Any thread.
    void observe() noexcept {
        if (!is_observed()) demand(observed);
    }
    [[gnu::noinline]] void publish() noexcept;
    /// Appends the text that dump_tasks() prints.
    void describe(std::string& text);
    [[nodiscard]] const loop_options& options() const noexcept { return options_; }

    event_loop* facade = nullptr;   // the owner, while it runs
    bool runs_without_work = false; // run() ends only with stop()
    loop_pulse pulse;
    /// For a spawn on this thread.
    [[nodiscard]] run_queue& spawning_queue() noexcept;

private:
    static constexpr nanoseconds no_wait{0};

    std::size_t make_turn(nanoseconds limit, bool& out_of_work);
    std::size_t turn(nanoseconds limit);
    [[gnu::noinline]] void run_more() noexcept;
    struct tended {
        nanoseconds wait;     // how long the loop may wait
        std::size_t done = 0; // timers that fired, or events
    };
    /// Fires due timers.
    [[nodiscard]] tended tend_timers(nanoseconds limit) noexcept;
    [[nodiscard, gnu::noinline]] tended tend_due_timers(nanoseconds limit,
                                                        clock::time_point present) noexcept;
    [[nodiscard]] nanoseconds until_soonest(nanoseconds limit,
                                            clock::time_point present) const noexcept;
    [[nodiscard]] bool was_away(clock::time_point present) const noexcept;
    [[gnu::noinline]] std::size_t fire_after_wait() noexcept;
    clock::time_point note_clock(clock::time_point now) noexcept {
        clock_ns = now.time_since_epoch().count();
        return now;
    }
    std::size_t take_posted() noexcept;
    [[nodiscard]] bool has_work() const noexcept;
    [[nodiscard]] bool wants_stop() const noexcept {
        return (demands_.load(std::memory_order_seq_cst) & stopped) != 0;
    }
    [[nodiscard]] bool is_observed() const noexcept {
        return (demands_.load(std::memory_order_relaxed) & observed) != 0;
    }
    void demand(std::uint8_t what) noexcept; // any thread
    [[nodiscard]] bool consume_stop() noexcept;
    void announce_work() noexcept;
    void claim_thread() noexcept;
    [[noreturn]] static void complain_of_fork() noexcept;

    // --- waiting, in a turn in which nothing is ready ---

    // asleep           in the poll
    // busily           polls repeatedly for a while, see loop_options::busy_poll
    // in_virtual_time  time moves to the next timer, or with events
    enum class waiting : std::uint8_t { asleep, busily, in_virtual_time };

    std::size_t sleep(nanoseconds limit, bool has_published = false) noexcept {
        // demand() sets its bit before it checks whether we are parked, so check after parking.
        if (!inbox_.park() || demands_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
            return attend_and_sleep(limit, has_published);
        const std::size_t events = driver_->poll(limit);
        inbox_.unpark();
        return events;
    }
    /// The rest of sleep(), if other threads demand something or there is an item.
    [[gnu::noinline]] std::size_t attend_and_sleep(nanoseconds limit, bool has_published) noexcept;
    /// Does what other threads demand, after park(). False: the loop must not sleep.
    [[nodiscard]] bool attend(bool has_published = false) noexcept;
    [[gnu::noinline]] std::size_t wait_busily(nanoseconds limit) noexcept;
    [[gnu::noinline]] std::size_t sleep_in_virtual_time(nanoseconds limit) noexcept;
    std::size_t wait_in_virtual_time(nanoseconds limit);

    /// Marks the loop as running, for the watchdog.
    class active {
    public:
        explicit active(loop& of, bool may_nest = false) noexcept
            : of_{of}
            , queue_{of, may_nest} {
            SIMPLENET_DEBUG_EXPECTS(cancelled_timers == 0,
                                    "a timer was cancelled outside of the turns of its loop");
            of_.pulse.active.store(true, std::memory_order_relaxed);
        }
        active(const active&) = delete;
        active& operator=(const active&) = delete;
        ~active() {
            of_.pulse.active.store(false, std::memory_order_relaxed);
            of_.publish();
        }

    private:
        loop& of_;
        activation queue_;
    };

    loop_options options_;
    // What other threads want. One variable, because every turn looks at it anyway.
    static constexpr std::uint8_t stopped = 1;  // by stop(): until run() has seen it
    static constexpr std::uint8_t observed = 2; // by observe(): for ever
    std::atomic<std::uint8_t> demands_ = 0;
    std::thread::id thread_;       // of the first run
    std::uint8_t catching_up_ = 0; // turns in which data from a pause may still beat timers
    bool embedded_ = false;        // native_handle() was called

    static constexpr std::size_t busy_turns_polled = 64;

    std::size_t busy_turns_ = 0; // since the loop slept, up to busy_turns_polled
    const waiting waits_ = time_ != nullptr               ? waiting::in_virtual_time
                           : options_.busy_poll > no_wait ? waiting::busily
                                                          : waiting::asleep;
    std::uint8_t short_waits_ = 0; // one bit for each of the last eight: at most busy_poll long
};

/// The loop of this thread. @pre a loop runs.
[[nodiscard]] inline loop& current_loop() noexcept {
    return static_cast<loop&>(run_queue::require_current());
}

} // namespace simplenet::v0::detail
