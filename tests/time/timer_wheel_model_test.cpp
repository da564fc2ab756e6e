// Compares the timer wheel with a sorted map, which does the same in the obvious way.

#include <simplenet/time/detail/timer_wheel.hpp>

#include "support/test_timers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using time_point = timer_wheel::time_point;

/// The expected behaviour of the wheel, expressed with a sorted map.
class model {
public:
    explicit model(time_point origin)
        : latest_{origin}
        , elapsed_{origin.time_since_epoch() / tick} {}

    void insert(std::size_t id, time_point deadline) {
        const auto past_tick = deadline.time_since_epoch() / tick;
        const bool whole = deadline.time_since_epoch() % tick == 0ns;
        const auto at = deadline <= latest_ ? elapsed_ : past_tick + (whole ? 0 : 1);
        pending_.emplace(key{at, ++sequence_}, std::pair{id, deadline});
    }
    void insert_after(std::size_t id, nanoseconds delay) { fresh_.emplace_back(id, delay); }
    void settle(time_point now) {
        latest_ = std::max(latest_, now);
        for (const auto& [id, delay] : fresh_)
            insert(id, delay > time_point::max() - latest_ ? time_point::max() : latest_ + delay);
        fresh_.clear();
    }
    void cancel(std::size_t id) {
        std::erase_if(pending_, [id](const auto& each) { return each.second.first == id; });
        std::erase_if(fresh_, [id](const auto& each) { return each.first == id; });
    }
    std::vector<std::size_t> expire(time_point now) {
        latest_ = std::max(latest_, now);
        elapsed_ = latest_.time_since_epoch() / tick;
        std::vector<std::size_t> due;
        while (!pending_.empty() && pending_.begin()->first.at <= elapsed_) {
            const auto [id, deadline] = pending_.begin()->second;
            EXPECT_LE(deadline, now);
            due.push_back(id);
            pending_.erase(pending_.begin());
        }
        return due;
    }
    /// The time at which the first timer is due.
    [[nodiscard]] std::optional<time_point> first() const {
        if (pending_.empty()) return std::nullopt;
        const auto at = pending_.begin()->first.at;
        if (at > time_point::max().time_since_epoch() / tick) return time_point::max();
        return time_point{tick * at};
    }
    [[nodiscard]] std::size_t size() const { return pending_.size() + fresh_.size(); }

private:
    struct key {
        std::int64_t at; // tick
        std::uint64_t sequence;
        auto operator<=>(const key&) const = default;
    };

    std::map<key, std::pair<std::size_t, time_point>> pending_;
    std::vector<std::pair<std::size_t, nanoseconds>> fresh_;
    time_point latest_;
    std::int64_t elapsed_;
    std::uint64_t sequence_ = 0;
};

/// Performs the same random operations on a wheel and on a model, and compares.
class timer_wheel_model_test : public ::testing::TestWithParam<unsigned> {
protected:
    static constexpr std::size_t timer_count = 60;

    /// From 1 ns to a hundred years; each order of magnitude is equally likely.
    nanoseconds some_duration() {
        const auto bits = random_() % 62;
        return nanoseconds{static_cast<std::int64_t>((random_() | 1) >> 2 >> (61 - bits))};
    }
    /// Steps that allow some thousands of them before the clock ends.
    nanoseconds some_step() {
        const auto kind = random_() % 100;
        if (kind == 0) return some_duration() / 512;
        return nanoseconds{static_cast<std::int64_t>(random_() >> (24 + random_() % 36))};
    }

    void arm_or_cancel(std::size_t id) {
        timer& one = timers_[id];
        if (one.armed()) {
            one.cancel();
            model_.cancel(id);
            return;
        }
        switch (random_() % 8) {
        case 0:
            return insert(id, now_ - some_duration() % (now_ - time_point{}));
        case 1: // often equal to an earlier one
            return insert(id, now_ - now_.time_since_epoch() % 1ms + 5ms);
        case 2:
            return insert(id, timers_[random_() % timer_count].deadline());
        case 3:
        case 4: {
            const nanoseconds delay = some_duration();
            wheel_.insert_after(one, delay);
            return model_.insert_after(id, delay);
        }
        default:
            return insert(id, later(some_duration()));
        }
    }

    void insert(std::size_t id, time_point deadline) {
        wheel_.insert(timers_[id], deadline);
        model_.insert(id, deadline);
    }

    time_point later(nanoseconds by) const {
        return by > time_point::max() - now_ ? time_point::max() : now_ + by;
    }

    void settle() {
        wheel_.settle(now_);
        model_.settle(now_);
    }

    void advance_to(time_point when) {
        now_ = when;
        std::vector<std::size_t> ids;
        for (timer_node* node : expired(wheel_, now_))
            ids.push_back(static_cast<std::size_t>(static_cast<timer*>(node) - timers_.data()));
        ASSERT_EQ(ids, model_.expire(now_));
    }

    void compare() {
        const auto next = wheel_.next();
        if (wheel_.has_fresh()) {
            ASSERT_LE(next, now_);
        } else {
            ASSERT_EQ(next.has_value(), model_.first().has_value());
            ASSERT_LE(next, model_.first());
        }
        ASSERT_EQ(wheel_.size(), model_.size());
        ASSERT_EQ(wheel_.empty(), model_.size() == 0);
    }

    wheels_without_loop fixture_;
    std::mt19937_64 random_{GetParam()};
    time_point now_ = start + nanoseconds{random_() % 1'000'000'000};
    timer_wheel wheel_{now_};
    model model_{now_};
    std::array<timer, timer_count> timers_;
};

TEST_P(timer_wheel_model_test, behaves_like_a_sorted_map) {
    for (int step = 0; step != 25'000; ++step) {
        const auto kind = random_() % 10;
        if (kind < 6) {
            arm_or_cancel(random_() % timer_count);
        } else if (kind < 7) {
            settle();
        } else if (kind < 9) {
            settle();
            advance_to(later(some_step()));
        } else {
            settle();
            const auto next = wheel_.next();
            // Not to the end of the clock, after which there is nothing left to test.
            if (next && *next - now_ < 1000h) advance_to(std::max(now_, *next));
        }
        // Rarely, because looking at every timer pours the batches.
        if (random_() % 16 == 0) compare();
        if (HasFatalFailure()) FAIL() << "at step " << step;
    }
}

INSTANTIATE_TEST_SUITE_P(seeds, timer_wheel_model_test, ::testing::Range(1U, 9U));

} // namespace
} // namespace simplenet::v0::detail
