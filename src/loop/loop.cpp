#include "loop/loop.hpp"

#include "sys/calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace simplenet::v0::detail {

namespace {

constexpr std::chrono::nanoseconds shortest_sleep{1 << 12}; // a tick of the timer wheel
constexpr std::chrono::milliseconds noticed_absence{10};
constexpr std::uint8_t most_turns_to_catch_up = 64; // a flood must not delay timers for ever

} // namespace

// --- running -------------------------------------------------------------------------------------

/// Whether the process was paused (SIGSTOP, a debugger, a virtual machine) or a turn took very
/// long, so that timers are overdue. Poll first then, so that data that arrived meanwhile beats its
/// deadline; repeat until nothing more arrives.
bool loop::was_away(clock::time_point present) const noexcept {
    return time_ == nullptr && timers.soonest() < present - noticed_absence;
}

inline loop::tended loop::tend_timers(nanoseconds limit) noexcept {
    const auto present = time_ == nullptr ? sys::monotonic_now() : time_->now();
    if (!touched_.empty()) [[unlikely]] {
        stamp_touched(present);
        timers.settle(present);
        return tend_due_timers(limit, present);
    }
    timers.settle(present);
    if (timers.soonest() <= present) [[unlikely]]
        return tend_due_timers(limit, present);
    note_clock(present);
    return {.wait = until_soonest(limit, present)};
}

inline loop::nanoseconds loop::until_soonest(nanoseconds limit,
                                             clock::time_point present) const noexcept {
    const nanoseconds left = std::min(limit, nanoseconds{timers.soonest() - present});
    if (left > shortest_sleep) [[likely]] {
        return left;
    }
    // Falling asleep and waking up takes longer, and the kernel's timers are late by 50 us
    // (PR_SET_TIMERSLACK in prctl(2)). Virtual time moves only in a wait.
    return time_ == nullptr ? no_wait : std::max(left, no_wait);
}

loop::tended loop::tend_due_timers(nanoseconds limit, clock::time_point present) noexcept {
    if (forked_) complain_of_fork();
    const std::int64_t before = std::exchange(clock_ns, present.time_since_epoch().count());
    if (clock_ns - before > nanoseconds{noticed_absence}.count()) {
        if (catching_up_ != 0) {
            catching_up_ /= 4; // if every turn is that long, it is load, not a pause
        } else if (was_away(present)) {
            catching_up_ = most_turns_to_catch_up;
        }
    }
    std::size_t done = 0;
    if (catching_up_ != 0) {
        done = driver_->poll(no_wait);
        --catching_up_;
        if (done != 0 && catching_up_ != 0) return {.wait = no_wait, .done = done};
        catching_up_ = 0;
    }
    done += timers.fire(present);
    if (touched_.empty()) timers.calm_down();
    if (has_ready()) return {.wait = no_wait, .done = done};
    if (timers.has_fresh()) { // one has armed itself again, later than `present` was read
        present = now();
        timers.settle(present);
    }
    if (timers.soonest() == clock::time_point::max()) return {.wait = limit, .done = done};
    return {.wait = until_soonest(limit, present), .done = done};
}

/// If tasks have kept each other busy for a while, polls less often: a few resumptions cost less
/// than the system call.
void loop::run_more() noexcept {
    if (busy_turns_ != busy_turns_polled) {
        ++busy_turns_;
        return;
    }
    std::size_t count = std::exchange(unpolled_, 0);
    while (has_ready() && !wants_stop() && count < resumptions_per_poll) {
        if (!inbox_.empty()) count += take_posted();
        count += run_first();
    }
}

// Straight-line for a turn of a busy server without timers; inline in run(), which servers call.
[[gnu::always_inline]] inline std::size_t loop::make_turn(nanoseconds limit, bool& out_of_work) {
    ++pulse.turns;
    std::size_t count = inbox_.empty() ? 0 : take_posted();
    count += run_ready();
    if (has_ready()) [[unlikely]] {
        if (limit != no_wait) run_more();
        if (has_ready()) limit = no_wait;
    }

    // One clock reading per turn, and none without timers. Due timers fire before the poll, and the
    // operations that they stop are attempted after it: data that is there beats a deadline.
    nanoseconds wait = limit;
    if (!timers.quiet()) {
        const tended timed = tend_timers(limit);
        wait = timed.wait;
        count += timed.done;
    }
    if (!has_work()) [[unlikely]] {
        out_of_work = true;
        const std::size_t last = driver_->poll(no_wait);
        pulse.completions += last;
        return count + last;
    }

    std::size_t events = 0;
    if (wait == no_wait) {
        if (is_observed()) publish();
        events = driver_->poll(no_wait);
    } else {
        busy_turns_ = 0;
        if (waits_ == waiting::asleep) [[likely]] {
            events = sleep(wait);
        } else {
            events = waits_ == waiting::busily ? wait_busily(wait) : sleep_in_virtual_time(limit);
        }
        if (events == 0) [[unlikely]] {
            const std::size_t fired = fire_after_wait();
            count += fired;
            if (fired != 0) events = driver_->catch_up();
        }
    }
    pulse.completions += events;
    return count + events;
}

/// After a wait that ended for a timer: it fires without another poll.
std::size_t loop::fire_after_wait() noexcept {
    return timers.quiet() ? 0 : timers.fire(note_clock(now()));
}

std::size_t loop::turn(nanoseconds limit) {
    bool out_of_work = false;
    return make_turn(limit, out_of_work);
}

std::size_t loop::take_posted() noexcept {
    std::size_t count = 0;
    for (posted* item = inbox_.take(); item != nullptr; ++count) {
        here = &top;
        inbox::pop(item).run();
    }
    return count;
}

bool loop::has_work() const noexcept {
    return live_chains().own() != 0 || has_ready() || !inbox_.empty() || closing_ != 0 ||
           runs_without_work;
}

/// Whether the loop was stopped; consumes the request.
inline bool loop::consume_stop() noexcept {
    if ((demands_.load(std::memory_order_relaxed) & stopped) == 0) [[likely]]
        return false;
    demands_.fetch_and(std::uint8_t{observed}, std::memory_order_acquire);
    return true;
}

std::size_t loop::attend_and_sleep(nanoseconds limit, bool has_published) noexcept {
    const bool sleeps = attend(has_published);
    const std::size_t events = driver_->poll(sleeps ? limit : no_wait);
    inbox_.unpark();
    return events;
}

bool loop::attend(bool has_published) noexcept {
    const std::uint8_t demands = demands_.load(std::memory_order_seq_cst);
    if ((demands & observed) != 0 && !has_published) publish();
    return inbox_.is_parked() && (demands & stopped) == 0;
}

void loop::complain_of_fork() noexcept {
    SIMPLENET_EXPECTS(
        false, "an event loop created before the fork() belongs to the parent: in the child, "
               "exec, _exit, or create a new loop outside of any loop");
    std::abort();
}

void loop::claim_thread() noexcept {
    if (is_inherited()) complain_of_fork();
    if (thread_ == std::thread::id{}) thread_ = std::this_thread::get_id();
    SIMPLENET_EXPECTS(thread_ == std::this_thread::get_id(),
                      "an event loop is run, and destroyed, by one thread");
}

void loop::run() {
    claim_thread();
    const active here_now{*this};
    if (embedded_) inbox_.unpark();
    note_clock(now());
    bool goes_on = !consume_stop() && has_work();
    while (goes_on) {
        bool out_of_work = false;
        make_turn(forever, out_of_work);
        goes_on = !consume_stop();
        // Checked only after a turn that found no work.
        if (out_of_work) [[unlikely]]
            goes_on = goes_on && has_work();
    }
    if (embedded_) announce_work();
}

bool loop::run_for(nanoseconds limit) {
    claim_thread();
    const active here_now{*this};
    if (embedded_) inbox_.unpark();
    note_clock(now());
    const auto start = clock::now();
    bool in_time = true;
    while (!consume_stop() && has_work()) {
        // Not less than zero: the smallest limit of all would overflow.
        const nanoseconds left = std::max(limit, no_wait) - (clock::now() - start);
        in_time = left > no_wait;
        if (!in_time) break;
        turn(left);
    }
    if (embedded_) announce_work();
    return in_time;
}

std::size_t loop::poll() {
    claim_thread();
    const active here_now{*this};
    if (embedded_) inbox_.unpark();
    const std::size_t count = turn(no_wait);
    if (embedded_) announce_work();
    return count;
}

run_queue& loop::spawning_queue() noexcept {
    debug_check_thread();
    if (embedded_ && run_queue::current() != this) driver_->announce();
    return *this;
}

// Makes the foreign loop that watches our descriptor call again for ready work and for every post.
void loop::announce_work() noexcept {
    if (has_ready() || !inbox_.park()) driver_->announce();
}

void loop::stop() noexcept {
    demand(stopped);
}

void loop::demand(std::uint8_t what) noexcept {
    inbox_.begin_waking();
    demands_.fetch_or(what, std::memory_order_seq_cst);
    if (inbox_.claim_wake_up()) waker_->wake();
    inbox_.has_woken();
}

int loop::native_handle() noexcept {
    debug_check_thread();
    if (!embedded_) {
        embedded_ = true;
        const int handle = driver_->native_handle();
        if (run_queue::current() != this) announce_work();
        return handle;
    }
    return driver_->native_handle();
}

std::optional<loop::clock::time_point> loop::next_timer() const {
    debug_check_thread();
    return timers.next();
}

loop_metrics loop::metrics() const {
    debug_check_thread();
    loop_metrics now = published_metrics();
    now.live_frames = simplenet::detail::live_frames();
    now.timers = timers.size();
    return now;
}

void loop::publish() noexcept {
    pulse.timers = timers.count();
    pulse.live_frames = simplenet::detail::live_frames();
}

loop_metrics loop::published_metrics() const noexcept {
    loop_metrics now;
    now.turns = pulse.turns;
    now.stalls = pulse.stalls.load(std::memory_order_relaxed);
    now.completions = pulse.completions;
    now.wake_ups = wake_ups_.load(std::memory_order_relaxed);
    now.live_tasks = live_chains();
    now.live_frames = pulse.live_frames;
    now.timers = pulse.timers;
    add_figures(now);
    return now;
}

void loop::describe(std::string& text) {
    const loop_metrics state = metrics();
    timers.settle_all(note_clock(now())); // each timer then knows its deadline
    text += to_string(driver_->kind());
    text += " loop: ";
    text += std::to_string(state.live_tasks) + " tasks, ";
    text += std::to_string(state.live_operations) + " operations, ";
    text += std::to_string(state.timers) + " timers\n";
    describe_tasks(text);
}

// --- the end -------------------------------------------------------------------------------------

void loop::tear_down() noexcept {
    if (!driver_) return;
    const bool never_ran = thread_ == std::thread::id{};
    claim_thread();
    runs_without_work = false;
    // The timers that this thread has cancelled so far belong to the loop around this one: see
    // timer_wheel::count().
    if (auto* const outer = static_cast<loop*>(run_queue::current()))
        static_cast<void>(outer->timers.count());
    {
        const active here_now{*this, never_ran};
        begin_teardown();
        // Work that the kernel does on its own, such as receiving ahead, would never end.
        retire_records();
        // Until all have ended, or nothing can resume the remaining ones.
        while (live_chains().own() != 0 && (has_ready() || !inbox_.empty() || driver_->busy())) {
            turn(driver_->busy() && !has_ready() ? forever : no_wait);
        }
        while (has_ready())
            run_ready();
        drain_kernel();
        // Operations leave their sockets before frames are destroyed: a stream that is destroyed
        // with its frame must not complete an operation of a half-destroyed frame.
        abandon_operations();
        destroy_chains();
        // From here on offer() drops its item. Every item that was offered before is in the inbox.
        refuse_offers();
        // Destructors of dropped items may post and spawn again.
        while (posted* list = inbox_.take()) {
            while (list != nullptr)
                inbox::pop(list).drop();
            destroy_chains();
        }
        drain_kernel();
        orphan_records();
    }
    // Never woken again: stop() and offer() may still be called until this object is gone.
    inbox_.unpark();
    // A stop() or post() that made this loop end may not have returned yet.
    inbox_.wait_for_wakers();
    driver_.reset();
}

} // namespace simplenet::v0::detail
