#include <simplenet/coro/combinators.hpp>

#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/small_tasks.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <expected>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::failing;
using testing::gate;
using testing::manual_queue;
using testing::nothing;
using testing::value;
using testing::witness;

task<std::string> text(std::string of) {
    co_await yield();
    co_return of;
}
task<> thrower(const char* what) {
    co_await yield();
    throw std::runtime_error{what};
}
task<result<int>> wait(gate& at) {
    co_return co_await at.wait();
}

/// The text of the exception that `body` throws.
template <class Body>
std::string thrown_by(manual_queue& queue, Body body) {
    try {
        queue.run(body);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "nothing";
}

TEST(when_all_test, returns_the_values_of_all_with_monostate_for_void) {
    manual_queue queue;
    auto all = queue.run([]() -> task<std::tuple<int, std::monostate, std::string>> {
        co_return co_await when_all(value(1), nothing(),
                                    text("a long enough text to be allocated"));
    });
    EXPECT_EQ(all, std::tuple(1, std::monostate{}, "a long enough text to be allocated"));
}

TEST(when_all_test, returns_references_and_move_only_values) {
    manual_queue queue;
    int object = 1;
    auto refer = [&]() -> task<int&> { co_return object; };
    auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(2); };

    queue.run([&]() -> task<> {
        auto [same, made] = co_await when_all(refer(), make());
        same = *made;
    });

    EXPECT_EQ(object, 2);
}

TEST(when_all_test, returns_values_that_look_like_its_own_tuple) {
    manual_queue queue;
    auto inner = []() -> task<std::tuple<int>> { co_return std::tuple{5}; };

    auto all = queue.run(
        [&]() -> task<std::tuple<std::tuple<int>>> { co_return co_await when_all(inner()); });

    EXPECT_EQ(std::get<0>(std::get<0>(all)), 5);
}

TEST(when_all_test, of_nothing_completes_at_once) {
    manual_queue queue;
    queue.run([]() -> task<> {
        EXPECT_EQ(co_await when_all(), std::tuple<>{});
        EXPECT_TRUE((co_await when_all(std::vector<task<int>>{})).empty());
        co_await when_all(std::vector<task<>>{});
    });
}

TEST(when_all_test, returns_the_values_of_a_vector_in_order) {
    manual_queue queue;
    auto all = queue.run([]() -> task<std::vector<std::string>> {
        std::vector<task<std::string>> tasks;
        tasks.push_back(text("first, and not short enough"));
        tasks.push_back(text("second, and not short enough"));
        co_return co_await when_all(std::move(tasks));
    });
    EXPECT_THAT(all, ElementsAre("first, and not short enough", "second, and not short enough"));
}

TEST(when_all_test, of_a_vector_of_tasks_without_value_returns_nothing) {
    manual_queue queue;
    queue.run([]() -> task<> {
        std::vector<task<>> tasks;
        tasks.push_back(nothing());
        auto all = when_all(std::move(tasks));
        static_assert(std::is_void_v<detail::await_result<decltype(all)>>);
        co_await std::move(all);
    });
}

TEST(when_all_test, takes_any_awaitable) {
    manual_queue queue;
    gate door;
    auto handle = queue.spawn([&]() -> task<int> {
        auto [opened, joined, nested] =
            co_await when_all(door.wait(), spawn(value(2)), when_all(value(3), yield()));
        co_return opened.value() + joined + std::get<0>(nested);
    });
    queue.turn_until_idle();
    door.open(1);

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }), 6);
}

TEST(when_all_test, runs_all_concurrently) {
    manual_queue queue;
    gate first;
    gate second;
    queue.spawn([&]() -> task<> { (void)co_await when_all(first.wait(), second.wait()); });

    queue.turn_until_idle();

    EXPECT_TRUE(first.waited_at());
    EXPECT_TRUE(second.waited_at());
    first.open();
    second.open();
    queue.turn_until_idle();
    EXPECT_EQ(queue.live(), 0U);
}

TEST(when_all_test, stops_no_other_after_an_error) {
    manual_queue queue;
    gate door;
    auto handle = queue.spawn([&]() -> task<int> {
        auto [failed, waited] = co_await when_all(failing(errc::queue_full), wait(door));
        EXPECT_EQ(failed.error(), errc::queue_full);
        co_return waited.value();
    });
    queue.turn_until_idle();
    door.open(4);

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }), 4);
    EXPECT_EQ(door.stops, 0);
}

TEST(when_all_test, rethrows_the_first_exception_in_order_after_all_have_ended) {
    manual_queue queue;
    gate door;
    bool ended = false;
    auto slow = [&]() -> task<> {
        (void)co_await door.wait();
        ended = true;
        throw std::runtime_error{"first argument"};
    };
    queue.spawn([&]() -> task<> {
        for (int i = 0; i < 5; ++i)
            co_await yield();
        door.open();
    });

    EXPECT_EQ(
        thrown_by(queue,
                  [&]() -> task<> { (void)co_await when_all(slow(), thrower("second argument")); }),
        "first argument");
    EXPECT_TRUE(ended);
}

TEST(when_all_test, passes_a_stop_to_all_and_joins_them) {
    manual_queue queue;
    gate first;
    gate second;
    auto handle = queue.spawn([&]() -> task<int> {
        auto [a, b] = co_await when_all(wait(first), wait(second));
        co_return a.has_value() + 2 * b.has_value();
    });
    queue.turn_until_idle();
    second.deaf = true;

    handle.request_stop();
    queue.turn_until_idle();
    EXPECT_FALSE(handle.done());
    second.open();

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }), 2);
}

TEST(when_all_test, refuses_operations_at_once_in_a_stopped_scope) {
    manual_queue queue;
    gate door;
    auto handle = queue.spawn([&]() -> task<> { (void)co_await when_all(wait(door), wait(door)); });
    handle.request_stop();

    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
    EXPECT_EQ(door.refusals, 2);
}

TEST(when_all_test, keeps_the_locals_of_all_until_its_await_ends) {
    manual_queue queue;
    std::vector<int> log;
    auto arm = [&](int mark) -> task<> {
        witness local{log, mark};
        co_return;
    };
    queue.run([&]() -> task<> {
        (void)co_await when_all(arm(1), arm(2));
        log.push_back(3);
    });
    EXPECT_THAT(log, ::testing::UnorderedElementsAre(1, 2, 3));
    EXPECT_EQ(log.back(), 3);
}

TEST(when_all_test, may_be_moved_and_destroyed_unstarted) {
    const auto frames = detail::live_frames();
    {
        auto never = when_all(value(1), yield());
        auto moved = std::move(never);
        auto any = when_any(value(1), yield());
        auto moved_any = std::move(any);
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(when_any_test, returns_the_first_and_stops_and_joins_the_others) {
    manual_queue queue;
    gate first;
    gate second;
    auto handle = queue.spawn([&]() -> task<std::size_t> {
        auto any = co_await when_any(wait(first), wait(second));
        EXPECT_FALSE(std::get<0>(any.values));
        EXPECT_EQ(std::get<1>(any.values).value().value(), 9);
        co_return any.index;
    });
    queue.turn_until_idle();

    second.open(9);

    EXPECT_EQ(queue.run([&]() -> task<std::size_t> { co_return co_await handle; }), 1U);
    EXPECT_EQ(first.stops, 1);
}

TEST(when_any_test, waits_for_a_slow_loser_and_keeps_its_late_success) {
    manual_queue queue;
    gate slow;
    gate quick;
    slow.deaf = true;
    auto handle = queue.spawn([&]() -> task<int> {
        auto any = co_await when_any(wait(quick), wait(slow));
        EXPECT_EQ(any.index, 0U);
        co_return std::get<1>(any.values).value().value();
    });
    queue.turn_until_idle();

    quick.open(1);
    queue.turn_until_idle();
    EXPECT_FALSE(handle.done());
    slow.open(2);

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }), 2);
}

TEST(when_any_test, has_the_value_of_the_first_even_if_it_is_an_error) {
    manual_queue queue;
    gate door;
    queue.run([&]() -> task<> {
        auto any = co_await when_any(failing(errc::queue_full), wait(door));
        EXPECT_EQ(any.index, 0U);
        EXPECT_EQ(std::get<0>(any.values).value().error(), errc::queue_full);
        EXPECT_FALSE(std::get<1>(any.values));
    });
}

TEST(when_any_test, result_can_be_used_inside_the_expression) {
    manual_queue queue;
    auto got = queue.run([]() -> task<std::string> {
        co_return *std::get<0>((co_await when_any(text("a text that needs an allocation"))).values);
    });
    EXPECT_EQ(got, "a text that needs an allocation");
}

TEST(when_any_test, of_a_vector_returns_the_index_of_the_first) {
    manual_queue queue;
    gate first;
    gate second;
    queue.run([&]() -> task<> {
        std::vector<task<result<int>>> tasks;
        tasks.push_back(wait(first));
        tasks.push_back(wait(second));
        auto opener = [&]() -> task<> {
            second.open(3);
            co_return;
        };
        tasks.push_back([](auto open) -> task<result<int>> {
            co_await yield();
            co_await open();
            co_await yield();
            co_await yield();
            co_return 8;
        }(opener));
        auto any = co_await when_any(std::move(tasks));
        EXPECT_EQ(any.index, 1U);
        EXPECT_FALSE(any.values[0]);
        EXPECT_EQ(any.values[1].value().value(), 3);
        EXPECT_EQ(any.values[2].value().value(), 8);
    });
}

TEST(when_any_test, rethrows_an_exception_after_all_have_ended) {
    manual_queue queue;
    gate door;
    EXPECT_EQ(
        thrown_by(queue, [&]() -> task<> { (void)co_await when_any(wait(door), thrower("lost")); }),
        "lost");
    EXPECT_EQ(door.stops, 1);
}

TEST(when_any_test, nests_in_itself) {
    manual_queue queue;
    gate a;
    gate b;
    gate c;
    gate d;
    gate e;
    gate f;
    auto handle = queue.spawn([&]() -> task<std::size_t> {
        auto inner = [](gate& first, gate& second) -> task<std::size_t> {
            co_return (co_await when_any(wait(first), wait(second))).index;
        };
        auto any = co_await when_any(inner(a, b), when_any(wait(d), inner(e, f)), wait(c));
        co_return any.index;
    });
    queue.turn_until_idle();

    c.open();

    EXPECT_EQ(queue.run([&]() -> task<std::size_t> { co_return co_await handle; }), 2U);
}

TEST(when_any_test, losers_that_have_not_started_yet_are_refused) {
    manual_queue queue;
    gate door;
    queue.run([&]() -> task<> { (void)co_await when_any(nothing(), wait(door)); });
    EXPECT_EQ(door.refusals, 1);
}

TEST(when_any_test, hands_a_group_that_outlives_its_arm_to_the_enclosing_scope) {
    manual_queue queue;
    gate door;
    bool stopped = false;
    auto handle = queue.spawn([&]() -> task<> {
        std::unique_ptr<task_group> group;
        auto arm = [&]() -> task<> {
            group = std::make_unique<task_group>();
            group->spawn([&]() -> task<> { stopped = !co_await door.wait(); });
            co_return;
        };
        (void)co_await when_any(arm());
        (void)co_await group->join();
    });
    queue.turn_until_idle();
    EXPECT_TRUE(door.waited_at());

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_TRUE(stopped);
    EXPECT_TRUE(handle.done());
}

TEST(when_any_death_test, of_an_empty_vector_is_a_contract_violation) {
    EXPECT_DEATH((void)when_any(std::vector<task<>>{}), "would never end");
}

TEST(gather_test, returns_the_values_of_all_with_monostate_for_void) {
    manual_queue queue;
    auto number = []() -> task<result<int>> { co_return 1; };
    auto done = []() -> task<result<>> { co_return {}; };
    auto moved = []() -> task<transfer_result> { co_return 7U; };

    auto all = queue.run([&]() -> task<result<std::tuple<int, std::monostate, std::size_t>>> {
        co_return co_await gather(number(), done(), moved());
    });

    EXPECT_EQ(all.value(), std::tuple(1, std::monostate{}, 7U));
}

TEST(gather_test, returns_the_first_error_after_it_stopped_and_joined_the_rest) {
    manual_queue queue;
    gate quick;
    gate slow;
    auto failing_late = [&]() -> task<result<int>> {
        (void)co_await quick.wait();
        co_return fail(errc::limit_exceeded);
    };
    auto handle = queue.spawn([&]() -> task<std::error_code> {
        auto all = co_await gather(wait(slow), failing_late());
        co_return all.error();
    });
    queue.turn_until_idle();
    slow.deaf = true;

    quick.open();
    queue.turn_until_idle();
    EXPECT_EQ(slow.stops, 1);
    EXPECT_FALSE(handle.done());
    slow.open();

    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await handle; }),
              errc::limit_exceeded);
}

TEST(gather_test, accepts_errors_other_than_error_code) {
    manual_queue queue;
    auto part = []() -> task<transfer_result> {
        co_return std::unexpected{transfer_error{make_error_code(errc::end_of_stream), 3}};
    };
    auto code =
        queue.run([&]() -> task<std::error_code> { co_return (co_await gather(part())).error(); });
    EXPECT_EQ(code, errc::end_of_stream);
}

TEST(gather_test, rethrows_an_exception_after_it_stopped_and_joined_the_rest) {
    manual_queue queue;
    gate door;
    auto throwing = []() -> task<result<>> {
        co_await yield();
        throw std::runtime_error{"child"};
    };
    EXPECT_EQ(thrown_by(queue, [&]() -> task<> { (void)co_await gather(wait(door), throwing()); }),
              "child");
    EXPECT_EQ(door.stops, 1);
}

TEST(gather_test, reports_a_stop_of_the_enclosing_scope) {
    manual_queue queue;
    gate a;
    gate b;
    auto handle = queue.spawn([&]() -> task<std::error_code> {
        co_return (co_await gather(a.wait(), b.wait())).error();
    });
    queue.turn_until_idle();
    handle.request_stop();

    EXPECT_EQ(queue.run([&]() -> task<std::error_code> { co_return co_await handle; }),
              std::errc::operation_canceled);
}

} // namespace
} // namespace simplenet::v0
