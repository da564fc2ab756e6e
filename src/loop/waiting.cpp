// The waits of a loop that are more than a poll of its backend. Layer loop.

#include "loop/loop.hpp"

#include <algorithm>
#include <bit>

namespace simplenet::v0::detail {

namespace {

/// For a loop that spins on memory that other threads write: saves power, and leaves more of the
/// core to its other thread.
void relax_processor() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace

/// If at least half of the last eight waits were short, polls repeatedly for up to
/// loop_options::busy_poll before it sleeps. A wait is short up to that length; up to twice that
/// length if the loop slept at once, because it includes waking up.
// The loop is not parked while it polls, so a post makes no system call.
std::size_t loop::wait_busily(nanoseconds limit) noexcept {
    const auto start = clock::now();
    nanoseconds passed = no_wait;
    std::size_t events = 0;
    const bool spins = std::popcount(short_waits_) >= 4;
    const bool publishes = spins && is_observed(); // nothing changes until the sleep
    if (spins) {
        if (publishes) publish();
        const nanoseconds most = std::min(options_.busy_poll, limit);
        pulse.active.store(false, std::memory_order_relaxed); // or the watchdog would report it
        do {
            events = driver_->poll(no_wait);
            if (events != 0 || !inbox_.empty() || wants_stop()) {
                break;
            }
            relax_processor();
            passed = clock::now() - start;
        } while (passed < most);
        pulse.active.store(true, std::memory_order_relaxed);
    }
    if (events == 0) {
        events = sleep(limit == forever ? limit : std::max(limit - passed, no_wait), publishes);
        passed = clock::now() - start;
    }
    const bool short_wait = (spins ? passed : passed / 2) <= options_.busy_poll;
    short_waits_ = static_cast<std::uint8_t>(short_waits_ << 1U | short_wait);
    return events;
}

std::size_t loop::sleep_in_virtual_time(nanoseconds limit) noexcept {
    static_cast<void>(inbox_.park());
    const bool sleeps = attend();
    const std::size_t events = sleeps ? wait_in_virtual_time(limit) : driver_->poll(no_wait);
    inbox_.unpark();
    return events;
}

/// The wait of a turn in which nothing is ready.
std::size_t loop::wait_in_virtual_time(nanoseconds limit) {
    // Slots of the wheel's last level begin further away: their timers were never meant to fire.
    constexpr nanoseconds never{std::int64_t{1} << 61};
    const auto next = timers.next();
    if (time_->moved_by_ == virtual_time::mover::poll) {
        const auto left = next ? std::max<nanoseconds>(*next - now(), no_wait) : forever;
        return driver_->poll(std::min(limit, left));
    }
    if (time_->moved_by_ == virtual_time::mover::owner || !next || *next - now() > never)
        return driver_->poll(limit);

    if (waits_for_io()) {
        const auto start = clock::now();
        const auto left = std::max<nanoseconds>(*next - now(), no_wait);
        const std::size_t events = driver_->poll(std::min(limit, left));
        time_->now_ += clock::now() - start;
        return events;
    }
    const std::size_t events = driver_->poll(no_wait);
    if (events == 0 && inbox_.empty()) time_->now_ = std::max(now(), *next);
    return events;
}

} // namespace simplenet::v0::detail
