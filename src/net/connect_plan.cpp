#include "net/connect_plan.hpp"

#include <algorithm>

namespace simplenet::v0::detail {

connect_plan::connect_plan(delays delays)
    : delays_{
          std::clamp<nanoseconds>(delays.attempt, shortest_attempt_delay, longest_attempt_delay),
          std::clamp<nanoseconds>(delays.resolution, nanoseconds::zero(), longest_attempt_delay)} {}

void connect_plan::answered(address_family family, std::span<const ip_address> addresses,
                            time_point now) {
    side& answer = of(family);
    answer.asked = false;
    answer.answered = now;
    answer.left.assign(addresses.begin(), addresses.end());
}

void connect_plan::failed() noexcept {
    --running_;
    hurry_ = true;
}

std::optional<connect_plan::time_point> connect_plan::not_before() noexcept {
    const side& v6 = sides_[0];
    if (started_ == 0) {
        // RFC 8305, section 3: IPv4 has answered first, and IPv6 gets a little more time.
        if (v6.left.empty() && v6.asked) return *sides_[1].answered + delays_.resolution;
        return std::nullopt;
    }
    if (hurry_ || running_ == 0) return std::nullopt;
    return last_start_ + delays_.attempt;
}

/// Alternates, beginning with IPv6 (RFC 8305, section 4). @pre an address is left.
connect_plan::side& connect_plan::next_side() noexcept {
    auto& [v6, v4] = sides_;
    side& preferred = started_ == 0 || last_was_v4_ ? v6 : v4;
    if (!preferred.left.empty()) return preferred;
    return &preferred == &v6 ? v4 : v6;
}

connect_plan::step connect_plan::next(time_point now) {
    auto& [v6, v4] = sides_;
    const bool none_left = (v6.left.empty() && v4.left.empty()) || started_ == most_attempts;
    if (none_left) {
        const bool more_may_come = (v6.asked || v4.asked) && started_ != most_attempts;
        if (running_ == 0 && !more_may_come) return {step::kind::give_up, {}};
        return {step::kind::wait, {}};
    }
    if (const auto earliest = not_before(); earliest && now < *earliest) {
        return {step::kind::wait, {}, earliest};
    }
    side& from = next_side();
    const ip_address address = from.left.front();
    from.left.pop_front();
    last_was_v4_ = &from == &v4;
    last_start_ = now;
    hurry_ = false;
    ++started_;
    ++running_;
    return {step::kind::attempt, address};
}

} // namespace simplenet::v0::detail
