#pragma once
// simulated_clock: time that advances only when the network lets it.

#include <simplenet/time/detail/virtual_time.hpp>

#include <algorithm>
#include <chrono>

namespace simplenet::v0::simulation {

using std::chrono::nanoseconds;

/// The time of a simulated loop. Starts at the same moment in every run, because the place of a
/// timer in its wheel depends on it.
class simulated_clock final : public detail::virtual_time {
public:
    simulated_clock() noexcept {
        now_ = clock::time_point{first_hour};
        moved_by_ = mover::poll;
    }

    /// The time since the start.
    [[nodiscard]] nanoseconds elapsed() const noexcept {
        return now_.time_since_epoch() - first_hour;
    }
    void advance_to(nanoseconds moment) noexcept {
        now_ = std::max(now_, clock::time_point{first_hour + moment});
    }

private:
    static constexpr std::chrono::hours first_hour{1};
};

} // namespace simplenet::v0::simulation
