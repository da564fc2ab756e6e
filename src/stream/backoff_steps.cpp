#include <simplenet/stream/detail/backoff_steps.hpp>

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <exception>

namespace simplenet::v0::detail {

backoff_steps::backoff_steps(backoff how, std::uint32_t seed)
    : how_{how}
    , random_{seed} {
    SIMPLENET_EXPECTS(how.initial.count() >= 0 && how.maximum.count() >= 0,
                      "a backoff with a negative duration");
    SIMPLENET_EXPECTS(how.factor >= 1, "a backoff whose factor is less than 1");
    random_.discard(3); // the first numbers of similar seeds are similar
    reset();
}

std::chrono::nanoseconds backoff_steps::next() {
    // Not std::uniform_int_distribution: the largest step is more than the engine's range, and
    // standard libraries differ in what they do about that.
    const double share = static_cast<double>(random_() - std::minstd_rand::min()) /
                         (std::minstd_rand::max() - std::minstd_rand::min());
    const auto maximum = static_cast<double>(how_.maximum.count());
    const double pause = share * step_;
    step_ = step_ * how_.factor < maximum ? step_ * how_.factor : maximum;
    if (pause >= maximum) return how_.maximum; // a double cannot hold each of the largest durations
    return std::chrono::nanoseconds{static_cast<std::int64_t>(pause)};
}

void backoff_steps::reset() noexcept {
    step_ = static_cast<double>(std::min(how_.initial, how_.maximum).count());
}

std::uint32_t random_seed() {
    try {
        return std::random_device{}();
    } catch (const std::exception&) { // a processor or a sandbox without a source
        const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
        return static_cast<std::uint32_t>(now ^ (now >> 32U));
    }
}

} // namespace simplenet::v0::detail
