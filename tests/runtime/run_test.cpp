#include <simplenet/runtime/run.hpp>

#include "support/backend_test.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/time/sleep.hpp>

#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class run_test : public ::testing::TestWithParam<backend> {
protected:
    void SetUp() override {
        if (!event_loop::create(options())) GTEST_SKIP() << "not offered by this kernel";
    }
    static loop_options options() { return {.backend = GetParam()}; }

private:
    watchdog watchdog_;
};

TEST_P(run_test, returns_what_main_returns) {
    auto number = []() -> task<int> { co_return 42; };
    auto text = [](std::string argument) -> task<std::string> {
        co_await yield();
        co_return argument + "!";
    };
    auto pointer = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };

    EXPECT_EQ(simplenet::run(number(), options()), 42);
    EXPECT_EQ(simplenet::run(text("a string that is too long to be kept inside"), options()),
              "a string that is too long to be kept inside!");
    EXPECT_EQ(*simplenet::run(pointer(), options()), 7);
}

TEST_P(run_test, runs_a_main_that_returns_nothing) {
    bool ran = false;
    auto body = [&]() -> task<> {
        EXPECT_TRUE(co_await async_sleep(1ms));
        ran = true;
    };

    simplenet::run(body(), options());

    EXPECT_TRUE(ran);
}

TEST_P(run_test, returns_the_reference_that_main_returns) {
    int variable = 1;
    auto body = [&]() -> task<int&> { co_return variable; };

    EXPECT_EQ(&simplenet::run(body(), options()), &variable);
}

TEST_P(run_test, returns_an_error_as_a_value) {
    auto body = []() -> task<result<int>> { co_return fail(errc::end_of_stream); };

    EXPECT_EQ(simplenet::run(body(), options()).error(), errc::end_of_stream);
}

TEST_P(run_test, rethrows_the_exception_of_main) {
    auto body = []() -> task<int> {
        co_await yield();
        throw std::runtime_error{"from main"};
    };

    try {
        simplenet::run(body(), options());
        FAIL();
    } catch (const std::runtime_error& thrown) {
        EXPECT_STREQ(thrown.what(), "from main");
    }
}

TEST_P(run_test, uses_the_backend_of_its_options) {
    auto body = []() -> task<backend> { co_return event_loop::current()->selected_backend(); };

    EXPECT_EQ(simplenet::run(body(), options()), GetParam());
}

TEST_P(run_test, stops_and_joins_the_rest_when_main_ends) {
    std::vector<std::string> order;
    auto background = [&]() -> task<> {
        const auto outcome = co_await async_sleep(1h);
        EXPECT_EQ(outcome.error(), std::errc::operation_canceled);
        co_await yield();
        order.emplace_back("background ended");
    };
    auto body = [&]() -> task<int> {
        spawn(background());
        co_await yield();
        order.emplace_back("main ends");
        co_return 1;
    };

    EXPECT_EQ(simplenet::run(body(), options()), 1);

    EXPECT_THAT(order, ElementsAre("main ends", "background ended"));
}

TEST_P(run_test, stops_the_rest_when_main_throws) {
    bool ended = false;
    auto background = [&]() -> task<> {
        static_cast<void>(co_await async_sleep(1h));
        ended = true;
    };
    auto body = [&]() -> task<> {
        spawn(background());
        co_await yield();
        throw std::runtime_error{""};
    };

    EXPECT_THROW(simplenet::run(body(), options()), std::runtime_error);

    EXPECT_TRUE(ended);
}

TEST_P(run_test, a_stop_of_the_loop_stops_main_which_still_returns) {
    auto body = []() -> task<std::string> {
        event_loop::current()->stop();
        const auto outcome = co_await async_sleep(1h);
        co_return outcome ? "slept" : outcome.error().message();
    };

    EXPECT_EQ(simplenet::run(body(), options()),
              std::make_error_code(std::errc::operation_canceled).message());
}

TEST_P(run_test, a_main_that_ignores_the_stop_of_the_loop_makes_run_throw) {
    auto body = []() -> task<int> {
        event_loop::current()->stop();
        for (;;)
            static_cast<void>(co_await async_sleep(1h));
    };

    try {
        simplenet::run(body(), options());
        FAIL();
    } catch (const std::system_error& thrown) {
        EXPECT_EQ(thrown.code(), std::errc::operation_canceled);
    }
}

TEST_P(run_test, can_be_called_again_and_on_several_threads) {
    auto body = [](int value) -> task<int> {
        EXPECT_TRUE(co_await async_sleep(1us));
        co_return value;
    };
    std::vector<std::jthread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([&, number, chosen = options()] {
            for (int round = 0; round < 20; ++round)
                EXPECT_EQ(simplenet::run(body(number), chosen), number);
        });
    }
}

TEST_P(run_test, sockets_that_main_returns_outlive_its_loop_closed) {
    auto body = []() -> task<local_stream> {
        auto [ours, theirs] = or_throw(local_stream::pair());
        EXPECT_TRUE(co_await theirs.write_some("x"));
        std::array<std::byte, 1> letter;
        EXPECT_TRUE(co_await ours.read_some(letter));
        co_return std::move(ours);
    };
    auto survivor = simplenet::run(body(), options());
    EXPECT_EQ(survivor.native_handle(), -1);

    auto read = [&]() -> task<std::error_code> {
        std::array<std::byte, 1> letter;
        co_return (co_await survivor.read_some(letter)).error();
    };
    EXPECT_EQ(simplenet::run(read(), options()), std::errc::bad_file_descriptor);
}

TEST_P(run_test, inside_a_running_loop_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto nothing = []() -> task<> { co_return; };
    auto body = [&]() -> task<> {
        simplenet::run(nothing());
        co_return;
    };
    EXPECT_DEATH(simplenet::run(body(), options()), "run\\(\\) inside a running loop");
}

INSTANTIATE_TEST_SUITE_P(backends, run_test, all_backends, backend_name);

TEST(run_test_without_backend, throws_when_no_loop_can_be_made) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto nothing = []() -> task<> { co_return; };
    const auto refused = [&] {
        ::setenv("SIMPLENET_BACKEND", "nonsense", 1);
        try {
            simplenet::run(nothing());
        } catch (const std::system_error& thrown) {
            std::_Exit(thrown.code() == std::errc::invalid_argument ? 0 : 1);
        }
    };
    EXPECT_EXIT(refused(), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace simplenet::v0::testing
