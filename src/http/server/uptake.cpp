#include "http/server/uptake.hpp"

#include "http/acknowledged_bytes.hpp"

#include <algorithm>

namespace simplenet::v0::http::detail {

using simplenet::detail::timed_queue;

// --- uptake --------------------------------------------------------------------------------------

uptake::nanoseconds uptake::until_look(const limits& within) const noexcept {
    constexpr nanoseconds shortest = std::chrono::milliseconds{1};
    constexpr nanoseconds first = std::chrono::milliseconds{20};
    nanoseconds left = (seen_ ? std::chrono::seconds{5} : first) - unseen_;
    if (within.send_idle > nanoseconds::zero()) {
        left = std::min({left, within.send_idle / 8 - unseen_, within.send_idle - idle_});
    }
    return std::max(left, shortest);
}

void uptake::saw(std::int64_t taken) noexcept {
    unseen_ = {};
    if (!seen_) reset();
    if (seen_ && taken > *seen_) {
        idle_ = {};
        pace_.moved(static_cast<std::uint64_t>(taken - *seen_));
    }
    seen_ = taken;
}

bool uptake::is_too_slow(const limits& within) const noexcept {
    if (within.send_idle > nanoseconds::zero() && idle_ >= within.send_idle) return true;
    const bool has_rate = within.minimum_rate != 0;
    return has_rate && pace_.left(within.send_idle, within.minimum_rate) < nanoseconds::zero();
}

// --- patience ------------------------------------------------------------------------------------

void patience::expired() noexcept {
    add_wait();
    look();
    if (so_far_.is_too_slow(limits_)) {
        end(simplenet::detail::stop_reason::deadline);
    } else {
        arm();
    }
}

void patience::arm() noexcept {
    const bool has_limit = limits_.send_idle > limits_.send_idle.zero();
    if (!has_limit && limits_.minimum_rate == 0) return;
    pause_ = so_far_.until_look(limits_);
    timed_queue::of_this_thread()->timers.insert_after(*this, pause_);
}

void patience::look() noexcept {
    so_far_.saw(acknowledged_bytes(socket_));
}

void patience::add_wait() noexcept {
    const auto now = timed_queue::present();
    // A disk that holds up the loop is not the client's fault.
    so_far_.waited(std::min<std::chrono::nanoseconds>(now - begin_, 2 * pause_));
    begin_ = now;
}

} // namespace simplenet::v0::http::detail
