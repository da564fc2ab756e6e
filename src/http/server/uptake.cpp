#include "http/server/uptake.hpp"

#include "http/acknowledged_bytes.hpp"
#include "http/unacknowledged_bytes.hpp"

#include <algorithm>

namespace simplenet::v0::http::detail {

using simplenet::detail::timed_queue;

// --- uptake --------------------------------------------------------------------------------------

uptake::nanoseconds uptake::until_look(const limits& within) const noexcept {
    constexpr nanoseconds shortest = std::chrono::milliseconds{1};
    nanoseconds step = std::chrono::seconds{5};
    if (within.send_idle > nanoseconds::zero()) step = std::min(step, within.send_idle / 8);
    return std::max(step - unseen_, shortest);
}

void uptake::look(int socket) noexcept {
    unseen_ = {};
    // Where a sandbox refuses the former, what leaves the send buffer shows it nearly as well.
    const std::int64_t now = acknowledged_bytes(socket).value_or(-unacknowledged_bytes(socket));
    if (seen_ && now > *seen_) {
        idle_ = {};
        taken_ += static_cast<std::uint64_t>(now - *seen_);
    }
    seen_ = now;
}

bool uptake::is_too_slow(const limits& within) const noexcept {
    if (within.send_idle > nanoseconds::zero() && idle_ >= within.send_idle) return true;
    if (within.minimum_rate == 0) return false;
    // In double: an answer may have 2^63 bytes.
    const std::chrono::duration<double> earned{static_cast<double>(taken_) /
                                               static_cast<double>(within.minimum_rate)};
    return total_ > grace && total_ - grace > earned;
}

// --- patience ------------------------------------------------------------------------------------

void patience::expired() noexcept {
    add_wait();
    so_far_.look(socket_);
    if (so_far_.is_too_slow(limits_)) {
        end(simplenet::detail::stop_reason::deadline);
    } else {
        arm();
    }
}

void patience::arm() noexcept {
    if (limits_.send_idle <= limits_.send_idle.zero() && limits_.minimum_rate == 0) return;
    auto& queue = static_cast<timed_queue&>(*simplenet::detail::run_queue::current());
    queue.timers.insert_after(*this, so_far_.until_look(limits_));
}

void patience::add_wait() noexcept {
    const auto now = timed_queue::present();
    so_far_.waited(now - begin_);
    begin_ = now;
}

} // namespace simplenet::v0::http::detail
