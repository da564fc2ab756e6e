#include "net/connect_plan.hpp"

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using kind = connect_plan::step::kind;

constexpr auto v4 = address_family::v4;
constexpr auto v6 = address_family::v6;

/// A plan, and a clock that only the test advances.
class connect_plan_test : public ::testing::Test {
protected:
    void use(connect_plan::delays delays) { plan_ = connect_plan{delays}; }
    void ask_both() {
        plan_.ask(v6);
        plan_.ask(v4);
    }
    void answer(address_family family, std::vector<std::string_view> texts) {
        std::vector<ip_address> addresses;
        for (const auto text : texts)
            addresses.push_back(*ip_address::parse(text));
        plan_.answered(family, addresses, now_);
    }
    void pass(std::chrono::nanoseconds time) { now_ += time; }
    void fail() { plan_.failed(); }

    /// The attempts that are due, in order.
    std::vector<std::string> due() {
        std::vector<std::string> addresses;
        for (;;) {
            last_ = plan_.next(now_);
            if (last_.what != kind::attempt) return addresses;
            addresses.push_back(last_.address.to_string());
        }
    }
    /// The time without anything to do, as of the last due().
    [[nodiscard]] std::optional<std::chrono::nanoseconds> wait() const {
        if (last_.what != kind::wait || !last_.until) return std::nullopt;
        return *last_.until - now_;
    }
    [[nodiscard]] bool given_up() const { return last_.what == kind::give_up; }

private:
    connect_plan plan_{{.attempt = 250ms, .resolution = 50ms}};
    connect_plan::time_point now_{100s};
    connect_plan::step last_{kind::wait, {}};
};

TEST_F(connect_plan_test, ipv6_starts_at_once_when_it_answers_first) {
    ask_both();
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_FALSE(wait()); // for an answer, without a limit

    answer(v6, {"::1"});
    EXPECT_THAT(due(), ElementsAre("::1"));
}

TEST_F(connect_plan_test, ipv4_waits_the_resolution_delay_for_ipv6) {
    ask_both();
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_EQ(wait(), 50ms);

    pass(49ms);
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_EQ(wait(), 1ms);

    pass(1ms);
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
}

TEST_F(connect_plan_test, ipv6_that_answers_within_the_resolution_delay_is_first) {
    ask_both();
    answer(v4, {"192.0.2.1"});
    pass(30ms);
    EXPECT_THAT(due(), IsEmpty());
    answer(v6, {"::1"});
    EXPECT_THAT(due(), ElementsAre("::1"));
    EXPECT_EQ(wait(), 250ms);
}

TEST_F(connect_plan_test, ipv4_does_not_wait_when_ipv6_has_no_addresses) {
    ask_both();
    answer(v4, {"192.0.2.1"});
    pass(1ms);
    answer(v6, {});
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
}

TEST_F(connect_plan_test, ipv6_without_addresses_waits_for_ipv4) {
    ask_both();
    answer(v6, {});
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_FALSE(wait());
    EXPECT_FALSE(given_up());
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
}

TEST_F(connect_plan_test, families_alternate_an_attempt_delay_apart) {
    ask_both();
    answer(v6, {"::1", "::2", "::3"});
    answer(v4, {"192.0.2.1", "192.0.2.2"});
    for (const std::string_view expected : {"::1", "192.0.2.1", "::2", "192.0.2.2", "::3"}) {
        EXPECT_THAT(due(), ElementsAre(expected));
        pass(249ms);
        EXPECT_THAT(due(), IsEmpty());
        pass(1ms);
    }
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_FALSE(given_up()); // five attempts are in progress
}

TEST_F(connect_plan_test, a_failure_starts_the_next_at_once) {
    ask_both();
    answer(v6, {"::1", "::2"});
    answer(v4, {"192.0.2.1", "192.0.2.2"});
    EXPECT_THAT(due(), ElementsAre("::1"));
    pass(1ms);
    fail();
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
    EXPECT_EQ(wait(), 250ms); // from the last start
    pass(250ms);
    EXPECT_THAT(due(), ElementsAre("::2"));
    fail(); // either of them: one attempt remains in progress
    EXPECT_THAT(due(), ElementsAre("192.0.2.2"));
}

TEST_F(connect_plan_test, it_gives_up_when_everything_has_failed) {
    ask_both();
    answer(v6, {"::1"});
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), ElementsAre("::1"));
    fail();
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
    EXPECT_FALSE(given_up());
    fail();
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_TRUE(given_up());
}

TEST_F(connect_plan_test, it_gives_up_when_neither_family_has_addresses) {
    ask_both();
    answer(v4, {});
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_FALSE(given_up());
    answer(v6, {});
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_TRUE(given_up());
}

TEST_F(connect_plan_test, it_does_not_give_up_while_an_answer_is_pending) {
    ask_both();
    answer(v6, {"::1"});
    EXPECT_THAT(due(), ElementsAre("::1"));
    fail();
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_FALSE(given_up());
    pass(10s);
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
}

TEST_F(connect_plan_test, a_late_answer_does_not_change_the_pace_of_attempts) {
    ask_both();
    answer(v4, {"192.0.2.1", "192.0.2.2", "192.0.2.3"});
    pass(50ms);
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
    pass(100ms);
    answer(v6, {"::1"});
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_EQ(wait(), 150ms);
    pass(150ms);
    EXPECT_THAT(due(), ElementsAre("::1"));
    pass(250ms);
    EXPECT_THAT(due(), ElementsAre("192.0.2.2"));
    pass(250ms);
    EXPECT_THAT(due(), ElementsAre("192.0.2.3"));
}

TEST_F(connect_plan_test, addresses_that_arrive_after_the_attempt_delay_start_at_once) {
    ask_both();
    answer(v6, {"::1"});
    EXPECT_THAT(due(), ElementsAre("::1"));
    pass(3s);
    EXPECT_THAT(due(), IsEmpty());
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
}

TEST_F(connect_plan_test, a_single_family_does_not_wait_for_the_other) {
    connect_plan plan{{.attempt = 250ms, .resolution = 50ms}};
    plan.ask(v4);
    const std::vector addresses{ip_address::loopback_v4()};
    plan.answered(v4, addresses, connect_plan::time_point{1s});
    EXPECT_EQ(plan.next(connect_plan::time_point{1s}).what, kind::attempt);
    plan.failed();
    EXPECT_EQ(plan.next(connect_plan::time_point{1s}).what, kind::give_up);
}

TEST_F(connect_plan_test, delays_are_clamped_to_the_limits_of_the_rfc) {
    for (const auto& [given, expected] :
         std::vector<std::pair<std::chrono::nanoseconds, std::chrono::nanoseconds>>{
             {0ns, 10ms},
             {-5s, 10ms},
             {std::chrono::nanoseconds::min(), 10ms},
             {1h, 2s},
             {std::chrono::nanoseconds::max(), 2s}}) {
        use({.attempt = given, .resolution = 50ms});
        ask_both();
        answer(v6, {"::1", "::2"});
        EXPECT_THAT(due(), ElementsAre("::1"));
        EXPECT_EQ(wait(), expected);
    }
    use({.attempt = 250ms, .resolution = std::chrono::nanoseconds::max()});
    ask_both();
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_EQ(wait(), 2s);
    use({.attempt = 250ms, .resolution = -1s});
    ask_both();
    answer(v4, {"192.0.2.1"});
    EXPECT_THAT(due(), ElementsAre("192.0.2.1"));
}

TEST_F(connect_plan_test, a_name_with_thousands_of_addresses_gets_32_attempts) {
    connect_plan plan{{.attempt = 10ms, .resolution = 0ms}};
    plan.ask(v4);
    plan.ask(v6); // IPv6 never answers
    std::vector<ip_address> addresses(4000, ip_address::loopback_v4());
    connect_plan::time_point now{1s};
    plan.answered(v4, addresses, now);
    int attempts = 0;
    for (int round = 0; round < 100; ++round, now += 10ms) {
        while (plan.next(now).what == kind::attempt)
            ++attempts;
    }
    EXPECT_EQ(attempts, 32);
    EXPECT_EQ(plan.next(now).what, kind::wait);
    while (attempts-- > 0)
        plan.failed();
    EXPECT_EQ(plan.next(now).what, kind::give_up);
}

// Whatever happens in whatever order, every address is tried once. Two attempts start within the
// delay only after a failure. The plan always waits for something that can happen, or gives up.
TEST_F(connect_plan_test, random_histories_try_every_address_once_and_end) {
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
        std::mt19937 dice{seed};
        const auto up_to = [&](unsigned most) {
            return static_cast<unsigned>(dice() % (most + 1));
        };
        connect_plan plan{{.attempt = 100ms, .resolution = 50ms}};
        connect_plan::time_point now{1s};
        std::set<std::string> left;
        bool asked[2] = {true, true};
        plan.ask(v6);
        plan.ask(v4);
        unsigned running = 0;
        bool over = false;
        for (int round = 0; round < 500 && !over; ++round) {
            const auto step = plan.next(now);
            if (step.what == kind::attempt) {
                EXPECT_EQ(left.erase(step.address.to_string()), 1U) << "seed " << seed;
                ++running;
                continue;
            }
            if (step.what == kind::give_up) {
                EXPECT_EQ(running, 0U);
                EXPECT_TRUE(left.empty());
                EXPECT_FALSE(asked[0] || asked[1]);
                over = true;
                continue;
            }
            EXPECT_TRUE(step.until ? *step.until > now : running != 0 || asked[0] || asked[1]);
            const unsigned side = up_to(1);
            if (asked[side] && up_to(2) == 0) {
                std::vector<ip_address> addresses;
                for (unsigned count = up_to(5); count > 0; --count) {
                    const std::string last = std::to_string(count);
                    addresses.push_back(*ip_address::parse((side == 0 ? "::" : "192.0.2.") + last));
                    left.insert(addresses.back().to_string());
                }
                plan.answered(side == 0 ? v6 : v4, addresses, now);
                asked[side] = false;
            } else if (running != 0 && up_to(2) == 0) {
                plan.failed();
                --running;
            } else {
                now += std::chrono::milliseconds{up_to(60)};
            }
        }
        EXPECT_TRUE(over) << "seed " << seed;
    }
}

} // namespace
} // namespace simplenet::v0::detail
