#include <simplenet/runtime/signal_set.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/time/deadline.hpp>

#include <gmock/gmock.h>

#include <optional>
#include <utility>
#include <vector>

#include <csignal>
#include <pthread.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::UnorderedElementsAre;

bool is_blocked(int number) {
    sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return ::sigismember(&now, number) == 1;
}

/// Restores the mask after the test.
class signal_set_test : public backend_test {
protected:
    void SetUp() override {
        ::pthread_sigmask(SIG_BLOCK, nullptr, &before_);
        backend_test::SetUp();
    }
    void TearDown() override {
        backend_test::TearDown();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    sigset_t before_{};
};

TEST_P(signal_set_test, receives_signals_of_its_numbers) {
    run([]() -> task<> {
        signal_set signals{SIGUSR1, SIGUSR2};
        ::raise(SIGUSR2);
        EXPECT_EQ(or_throw(co_await signals.next()), SIGUSR2);
        ::raise(SIGUSR1);
        ::raise(SIGUSR2);
        const int first = or_throw(co_await signals.next());
        const int second = or_throw(co_await signals.next());
        EXPECT_THAT((std::vector{first, second}), UnorderedElementsAre(SIGUSR1, SIGUSR2));
    });
}

TEST_P(signal_set_test, wakes_a_waiter) {
    run([]() -> task<> {
        signal_set signals{SIGUSR1};
        auto waiter =
            spawn([&]() -> task<int> { co_return (co_await signals.next()).value_or(-1); });
        co_await turns(5);
        ::raise(SIGUSR1);
        EXPECT_EQ(co_await waiter, SIGUSR1);
    });
}

TEST_P(signal_set_test, equal_signals_become_one_and_real_time_signals_do_not) {
    run([]() -> task<> {
        signal_set signals{SIGUSR1, SIGRTMIN};
        for (int times = 0; times < 3; ++times)
            ::raise(SIGUSR1);
        EXPECT_EQ(or_throw(co_await signals.next()), SIGUSR1);
        EXPECT_EQ((co_await with_timeout(signals.next(), 1ms)).error(), errc::deadline_exceeded);
        for (int times = 0; times < 3; ++times)
            ::raise(SIGRTMIN);
        for (int times = 0; times < 3; ++times)
            EXPECT_EQ(or_throw(co_await signals.next()), SIGRTMIN);
        EXPECT_EQ((co_await with_timeout(signals.next(), 1ms)).error(), errc::deadline_exceeded);
    });
}

TEST_P(signal_set_test, receives_a_signal_while_descriptors_are_short) {
    run([]() -> task<> {
        signal_set signals{SIGUSR1};
        const descriptor_limit none;
        ::raise(SIGUSR1);
        EXPECT_EQ(or_throw(co_await signals.next()), SIGUSR1);
    });
}

TEST_P(signal_set_test, a_stopped_wait_takes_none) {
    run([]() -> task<> {
        signal_set signals{SIGUSR1};
        auto waiter = spawn([&]() -> task<> {
            EXPECT_EQ((co_await signals.next()).error(), std::errc::operation_canceled);
            ::raise(SIGUSR1);
            EXPECT_EQ((co_await signals.next()).error(), std::errc::operation_canceled);
        });
        co_await turns(3);
        waiter.request_stop();
        co_await waiter;
        EXPECT_EQ(or_throw(co_await signals.next()), SIGUSR1);
    });
}

TEST_P(signal_set_test, each_signal_goes_to_one_waiter) {
    run([]() -> task<> {
        signal_set signals{SIGUSR1, SIGUSR2};
        signal_set others{SIGUSR1};
        std::vector<int> received;
        std::vector<join_handle<>> waiters;
        for (signal_set* set : {&signals, &signals, &others}) {
            waiters.push_back(spawn([&received, set]() -> task<> {
                while (const auto number = co_await set->next())
                    received.push_back(*number);
            }));
        }
        co_await turns(5);
        ::raise(SIGUSR1);
        ::raise(SIGUSR2);
        co_await until([&] { return received.size() == 2; });
        for (auto& waiter : waiters) {
            waiter.request_stop();
            co_await waiter;
        }
        EXPECT_THAT(received, UnorderedElementsAre(SIGUSR1, SIGUSR2));
    });
}

TEST_P(signal_set_test, restores_the_signal_mask) {
    sigset_t usr2;
    ::sigemptyset(&usr2);
    ::sigaddset(&usr2, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
    {
        const signal_set signals{SIGUSR1, SIGUSR2};
        EXPECT_TRUE(is_blocked(SIGUSR1));
    }
    EXPECT_FALSE(is_blocked(SIGUSR1));
    EXPECT_TRUE(is_blocked(SIGUSR2)); // by the program
}

TEST_P(signal_set_test, sets_may_overlap_and_end_in_any_order) {
    std::optional<signal_set> first{signal_set{SIGUSR1}};
    std::optional<signal_set> second{signal_set{SIGUSR1, SIGUSR2}};
    first.reset();
    EXPECT_TRUE(is_blocked(SIGUSR1));
    first.emplace(signal_set{SIGUSR2});
    second.reset();
    EXPECT_FALSE(is_blocked(SIGUSR1));
    EXPECT_TRUE(is_blocked(SIGUSR2));
    first = signal_set{SIGUSR1};
    EXPECT_TRUE(is_blocked(SIGUSR1));
    EXPECT_FALSE(is_blocked(SIGUSR2));
    signal_set moved = *std::move(first);
    first.reset();
    EXPECT_TRUE(is_blocked(SIGUSR1));
}

TEST_P(signal_set_test, receives_ignored_signals_too) {
    const auto before = std::signal(SIGUSR1, SIG_IGN);
    run([]() -> task<> {
        signal_set signals{SIGUSR1};
        ::raise(SIGUSR1);
        EXPECT_EQ(or_throw(co_await signals.next()), SIGUSR1);
    });
    std::signal(SIGUSR1, before);
}

TEST_P(signal_set_test, a_wait_may_be_in_flight_when_the_loop_ends) {
    if (IsSkipped()) return;
    const auto open = open_descriptors();
    {
        signal_set signals{SIGUSR1};
        std::error_code error;
        loop().spawn([&]() -> task<> { error = (co_await signals.next()).error(); });
        for (int turn = 0; turn < 5; ++turn)
            loop().poll();

        destroy_loop();

        EXPECT_EQ(error, std::errc::operation_canceled);
        remake_loop();
    }
    EXPECT_EQ(open_descriptors(), open);
}

using signal_set_death_test = signal_set_test;

TEST_P(signal_set_death_test, a_signal_that_cannot_be_blocked_is_a_violation) {
    EXPECT_DEATH(signal_set{SIGKILL}, "can be blocked");
    EXPECT_DEATH(signal_set{4711}, "can be blocked");
}

INSTANTIATE_TEST_SUITE_P(backends, signal_set_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, signal_set_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
