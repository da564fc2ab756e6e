#include <simplenet/coro/or_return.hpp>

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;

result<int> odd(int number) {
    if (number % 2 == 0) return fail(std::errc::invalid_argument);
    return number;
}

task<result<int>> odd_later(int number) {
    co_await yield();
    co_return odd(number);
}

task<result<int>> odd_at_once(int number) {
    co_return odd(number);
}

TEST(or_return_test, returns_the_value_of_a_result) {
    manual_queue queue;

    auto sum = queue.run([]() -> task<result<int>> {
        const auto held = odd(1);
        const int one = co_await or_return(held);
        const int three = co_await or_return(odd(3));
        co_return one + three;
    });

    EXPECT_EQ(sum, 4);
}

TEST(or_return_test, ends_the_task_with_the_error_of_a_result) {
    manual_queue queue;
    bool went_on = false;

    auto ended = queue.run([&]() -> task<result<std::string>> {
        const int two = co_await or_return(odd(2));
        went_on = true;
        co_return std::to_string(two);
    });

    EXPECT_EQ(ended.error(), std::errc::invalid_argument);
    EXPECT_FALSE(went_on);
}

TEST(or_return_test, returns_a_reference_into_a_named_result) {
    manual_queue queue;
    result<std::string> named = "text";

    auto ended = queue.run([&]() -> task<result<>> {
        auto& inside = co_await or_return(named);
        EXPECT_EQ(&inside, &*named);
        co_return result<>{};
    });

    EXPECT_TRUE(ended);
}

TEST(or_return_test, takes_move_only_values) {
    manual_queue queue;

    auto text = queue.run([]() -> task<result<std::unique_ptr<std::string>>> {
        auto make = [](const char* of) -> task<result<std::unique_ptr<std::string>>> {
            co_await yield();
            co_return std::make_unique<std::string>(of);
        };
        auto first = co_await or_return(make("first "));
        result<std::unique_ptr<std::string>> held = std::make_unique<std::string>("second");
        auto second = co_await or_return(std::move(held));
        *first += *second;
        co_return first;
    });

    EXPECT_EQ(**text, "first second");
}

TEST(or_return_test, awaits_a_task_that_ends_at_once) {
    manual_queue queue;

    auto sum = queue.run([]() -> task<result<int>> {
        co_return co_await or_return(odd_at_once(1)) + co_await or_return(odd_at_once(5));
    });
    auto ended = queue.run([]() -> task<result<int>> {
        co_return co_await or_return(odd_at_once(1)) + co_await or_return(odd_at_once(4));
    });

    EXPECT_EQ(sum, 6);
    EXPECT_EQ(ended.error(), std::errc::invalid_argument);
}

TEST(or_return_test, awaits_a_task_that_suspends) {
    manual_queue queue;

    auto sum = queue.run([]() -> task<result<int>> {
        co_return co_await or_return(odd_later(1)) + co_await or_return(odd_later(5));
    });
    auto ended = queue.run([]() -> task<result<int>> {
        co_return co_await or_return(odd_later(1)) + co_await or_return(odd_later(4));
    });

    EXPECT_EQ(sum, 6);
    EXPECT_EQ(ended.error(), std::errc::invalid_argument);
}

TEST(or_return_test, awaits_an_operation) {
    manual_queue queue;
    gate door;
    auto handle = queue.spawn([&]() -> task<result<int>> {
        co_return co_await or_return(door.wait()) + co_await or_return(door.wait());
    });

    queue.turn_until_idle();
    door.open(1);
    queue.turn_until_idle();
    door.open(2);

    EXPECT_EQ(queue.run([&]() -> task<result<int>> { co_return co_await handle; }), 3);
}

TEST(or_return_test, takes_a_result_without_a_value) {
    manual_queue queue;

    auto ended = queue.run([]() -> task<result<>> {
        auto good = []() -> task<result<>> { co_return result<>{}; };
        auto bad = []() -> task<result<>> { co_return fail(errc::limit_exceeded); };
        co_await or_return(result<>{});
        co_await or_return(good());
        co_await or_return(bad());
        ADD_FAILURE() << "continued";
        co_return result<>{};
    });

    EXPECT_EQ(ended.error(), errc::limit_exceeded);
}

TEST(or_return_test, makes_an_error_code_of_a_transfer_error) {
    manual_queue queue;

    auto ended = queue.run([]() -> task<result<>> {
        co_await or_return(
            transfer_result{std::unexpected{transfer_error{make_error_code(errc::queue_full), 7}}});
        co_return result<>{};
    });
    auto kept = queue.run([]() -> task<transfer_result> {
        co_await or_return(
            transfer_result{std::unexpected{transfer_error{make_error_code(errc::queue_full), 7}}});
        co_return 1U;
    });

    EXPECT_EQ(ended.error(), errc::queue_full);
    EXPECT_EQ(kept.error().transferred, 7U);
}

TEST(or_return_test, takes_any_expected_whose_error_converts) {
    manual_queue queue;

    auto ended = queue.run([]() -> task<std::expected<int, std::string>> {
        co_return co_await or_return(std::expected<int, const char*>{std::unexpect, "no"});
    });

    EXPECT_EQ(ended.error(), "no");
    using to_text = detail::task_promise<std::expected<int, std::string>>;
    static_assert(detail::can_end_with<to_text, const char*>);
    static_assert(!detail::can_end_with<to_text, std::error_code>);
    static_assert(!detail::can_end_with<detail::task_promise<int>, std::error_code>);
    static_assert(!detail::can_end_with<detail::task_promise<void>, std::error_code>);
    // The count of bytes moved would be lost or invented.
    static_assert(!detail::can_end_with<detail::task_promise<transfer_result>, std::error_code>);
}

TEST(or_return_test, passes_an_error_up_through_every_task) {
    manual_queue queue;
    struct nested {
        static task<result<int>> down(int depth) {
            if (depth == 0) co_return co_await or_return(odd_later(2));
            co_return co_await or_return(down(depth - 1)) + 1;
        }
    };

    EXPECT_EQ(queue.run(nested::down(500)).error(), std::errc::invalid_argument);
}

// Objects in a coroutine die with its frame, and the frame belongs to the await of the parent.
TEST(or_return_test, keeps_the_locals_until_the_parents_await_ends) {
    manual_queue queue;
    std::vector<std::string> log;
    struct noted {
        std::vector<std::string>& log;
        const char* name;
        ~noted() { log.emplace_back(name); }
    };
    auto child = [&](bool later) -> task<result<>> {
        const noted first{log, "first"};
        const noted second{log, "second"};
        if (later) co_await yield();
        co_await or_return(result<>{fail(errc::queue_full)});
        co_return result<>{};
    };

    queue.run([&]() -> task<> {
        for (const bool later : {false, true}) {
            (void)(log.emplace_back((co_await child(later)).error().message()));
            log.emplace_back("after");
        }
    });

    const auto message = make_error_code(errc::queue_full).message();
    EXPECT_THAT(
        log, ElementsAre(message, "second", "first", "after", message, "second", "first", "after"));
}

TEST(or_return_test, ends_a_spawned_task_whose_locals_are_gone_when_it_is_joined) {
    manual_queue queue;
    auto alive = std::make_shared<int>();
    const std::weak_ptr<int> watched = alive;
    auto child = [](std::shared_ptr<int>) -> task<result<int>> {
        co_return co_await or_return(odd_later(2));
    };

    queue.run([&]() -> task<> {
        auto handle = spawn(child, std::move(alive));
        const auto ended = co_await handle;
        EXPECT_EQ(ended.error(), std::errc::invalid_argument);
        EXPECT_TRUE(watched.expired());
    });
}

TEST(or_return_test, ends_a_detached_task) {
    manual_queue queue;
    auto alive = std::make_shared<int>();
    const std::weak_ptr<int> watched = alive;
    queue.spawn([kept = std::move(alive)]() -> task<result<int>> {
        co_return co_await or_return(odd_later(2));
    });

    queue.turn_until_idle();

    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(queue.live(), 0U);
}

TEST(or_return_test, ends_the_children_and_the_body_of_a_group_with_the_error) {
    manual_queue queue;
    gate door;

    const auto of_child = queue.run([&]() -> task<result<>> {
        auto body = [&](task_group& group) -> task<> {
            group.spawn([]() -> task<result<>> {
                co_await or_return(odd_later(2));
                co_return result<>{};
            });
            (void)co_await door.wait(); // waits until the failure of the child stops it
        };
        co_return co_await with_group(body);
    });
    const auto of_body = queue.run([&]() -> task<result<>> {
        auto body = [&](task_group& group) -> task<result<>> {
            group.spawn([](gate& at) -> task<> { (void)co_await at.wait(); }, std::ref(door));
            co_await or_return(odd_later(2));
            co_return result<>{};
        };
        co_return co_await with_group(body);
    });

    EXPECT_EQ(of_child.error(), std::errc::invalid_argument);
    EXPECT_EQ(of_body.error(), std::errc::invalid_argument);
    EXPECT_EQ(door.stops, 2);
}

TEST(or_return_test, ends_an_arm_of_a_combinator) {
    manual_queue queue;
    auto ends = [](int number) -> task<result<int>> {
        co_return co_await or_return(odd_later(number));
    };

    auto both = queue.run([&]() -> task<result<int>> {
        auto [one, two] = co_await when_all(ends(1), ends(2));
        EXPECT_EQ(one, 1);
        EXPECT_EQ(two.error(), std::errc::invalid_argument);
        auto [three, five] = co_await or_return(gather(ends(3), ends(5)));
        EXPECT_EQ(three + five, 8);
        co_await or_return(gather(ends(7), ends(8)));
        co_return 0;
    });

    EXPECT_EQ(both.error(), std::errc::invalid_argument);
}

TEST(or_return_test, joins_a_task_by_its_handle) {
    manual_queue queue;

    auto ended = queue.run([]() -> task<result<int>> {
        auto first = spawn(odd_later(1));
        auto second = spawn(odd_later(2));
        EXPECT_EQ(co_await or_return(first), 1);
        co_return co_await or_return(std::move(second));
    });

    EXPECT_EQ(ended.error(), std::errc::invalid_argument);
}

TEST(or_return_test, rethrows_the_exception_of_the_awaited_task) {
    manual_queue queue;
    auto throws = [](bool later) -> task<result<int>> {
        if (later) co_await yield();
        throw std::runtime_error{"thrown"};
    };

    const int caught = queue.run([&]() -> task<int> {
        auto inner = [&](bool later) -> task<result<int>> {
            try {
                co_return co_await or_return(throws(later));
            } catch (const std::runtime_error&) {
                co_return 1;
            }
        };
        co_return *co_await inner(false) + *co_await inner(true);
    });

    EXPECT_EQ(caught, 2);
}

TEST(or_return_test, a_stop_reaches_the_awaited_operation_and_ends_the_task) {
    manual_queue queue;
    gate door;
    auto handle = queue.spawn([&]() -> task<result<int>> {
        auto inner = [&]() -> task<result<int>> { co_return co_await or_return(door.wait()); };
        co_return co_await or_return(inner());
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    ASSERT_TRUE(handle.done());
    EXPECT_EQ(queue.run([&]() -> task<result<int>> { co_return co_await handle; }).error(),
              std::errc::operation_canceled);
    EXPECT_EQ(door.stops, 1);
}

TEST(or_return_test, success_beats_a_stop) {
    manual_queue queue;
    gate door;
    door.deaf = true;
    auto handle =
        queue.spawn([&]() -> task<result<int>> { co_return co_await or_return(door.wait()); });
    queue.turn_until_idle();

    handle.request_stop();
    door.open(7);
    queue.turn_until_idle();

    EXPECT_EQ(queue.run([&]() -> task<result<int>> { co_return co_await handle; }), 7);
}

TEST(or_return_test, a_task_that_waits_in_it_dies_with_its_queue) {
    gate door;
    door.deaf = true;
    auto alive = std::make_shared<int>();
    const std::weak_ptr<int> watched = alive;
    {
        manual_queue queue;
        queue.spawn([&door, kept = std::move(alive)]() -> task<result<int>> {
            auto inner = [](gate& at) -> task<result<int>> {
                co_return co_await or_return(at.wait());
            };
            co_return co_await or_return(shield(inner(door)));
        });
        queue.turn_until_idle();
    }

    EXPECT_TRUE(watched.expired());
}

TEST(or_return_test, keeps_the_stack_flat) {
    manual_queue queue;
    constexpr int rounds = 200'000;

    const auto sum = queue.run([]() -> task<result<int>> {
        int total = 0;
        for (int i = 0; i < rounds; ++i) {
            total += co_await or_return(odd_at_once(1));
            if (i % 1000 == 0) total += co_await or_return(odd_later(1));
        }
        co_return total;
    });
    const auto failures = queue.run([]() -> task<int> {
        auto fails = []() -> task<result<int>> { co_return co_await or_return(odd_at_once(2)); };
        int total = 0;
        for (int i = 0; i < rounds; ++i)
            total += static_cast<int>((co_await fails()).error() == std::errc::invalid_argument);
        co_return total;
    });

    EXPECT_EQ(sum, rounds + rounds / 1000);
    EXPECT_EQ(failures, rounds);
}

template <class T>
concept can_be_combined = requires(T&& awaitable) { when_all(std::move(awaitable)); };

TEST(or_return_test, is_refused_by_combinators) {
    static_assert(can_be_combined<decltype(odd_later(1))>);
    static_assert(!can_be_combined<decltype(or_return(odd_later(1)))>);
    static_assert(!can_be_combined<decltype(or_return(odd(1)))>);
}

} // namespace
} // namespace simplenet::v0
