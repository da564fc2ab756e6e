#include <simplenet/coro/detail/run_queue.hpp>

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"
#include "support/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <system_error>
#include <vector>

namespace simplenet::v0 {
namespace {

using detail::scope;
using detail::stop_reason;
using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;
using testing::witness;

/// Awaits in a scope that the test stops.
struct exposing_policy {
    scope** exposed;
    static stop_reason inherits(stop_reason reason) noexcept { return reason; }
    void entered(scope& inner) noexcept { *exposed = &inner; }
    static void suspended(scope&) noexcept {}
    void leaving() noexcept { *exposed = nullptr; }
    static decltype(auto) finish(auto&& resume) { return resume(); }
};
template <class Awaitable>
auto in_scope(Awaitable awaitable, scope*& exposed) {
    return detail::scoped_awaiter<Awaitable, exposing_policy>{std::move(awaitable), &exposed};
}

TEST(run_queue_test, resumes_in_order_what_was_ready_at_the_start_of_a_turn) {
    manual_queue queue;
    std::vector<int> log;
    auto note = [&](int number) -> task<> {
        log.push_back(number);
        co_await yield();
        log.push_back(number + 10);
    };
    queue.spawn(note(1));
    queue.spawn(note(2));

    EXPECT_EQ(queue.turn(), 2U);
    EXPECT_THAT(log, ElementsAre(1, 2));
    queue.turn_until_idle();
    EXPECT_THAT(log, ElementsAre(1, 2, 11, 12));
}

TEST(run_queue_test, gives_each_resumption_a_new_budget_of_inline_completions) {
    manual_queue queue;
    auto spend = [&]() -> task<int> {
        int turns = 0;
        while (queue.take_inline_turn())
            ++turns;
        co_return turns;
    };
    const int expected = static_cast<int>(detail::run_queue::inline_turns_per_resume);

    EXPECT_EQ(queue.run(spend()), expected);
    EXPECT_EQ(queue.run(spend()), expected);
}

TEST(run_queue_test, a_stopped_scope_stays_stopped_for_every_later_operation) {
    manual_queue queue;
    gate door;
    scope* inner = nullptr;
    std::vector<std::error_code> codes;
    auto body = [&]() -> task<> {
        for (int i = 0; i < 3; ++i)
            codes.push_back((co_await door.wait()).error());
    };
    queue.spawn([&]() -> task<> {
        co_await in_scope(body(), inner);
        (void)co_await door.wait();
    });
    queue.turn_until_idle();

    inner->stop(stop_reason::canceled);
    queue.turn_until_idle();

    const auto canceled = std::make_error_code(std::errc::operation_canceled);
    EXPECT_THAT(codes, ElementsAre(canceled, canceled, canceled));
    EXPECT_EQ(door.refusals, 2);
    EXPECT_TRUE(door.waited_at()) << "the scope around it was not stopped";
    door.open();
    queue.turn_until_idle();
}

TEST(run_queue_test, the_reason_of_the_first_stop_wins) {
    manual_queue queue;
    gate door;
    scope* outer = nullptr;
    scope* inner = nullptr;
    std::vector<std::error_code> codes;
    auto body = [&]() -> task<> {
        codes.push_back((co_await door.wait()).error());
        codes.push_back((co_await door.wait()).error());
    };
    auto limited = [&]() -> task<> {
        co_await in_scope(body(), inner);
        codes.push_back((co_await door.wait()).error());
    };
    queue.spawn([&]() -> task<> { co_await in_scope(limited(), outer); });
    queue.turn_until_idle();

    inner->stop(stop_reason::deadline);
    outer->stop(stop_reason::canceled);
    queue.turn_until_idle();

    const auto canceled = std::make_error_code(std::errc::operation_canceled);
    const auto late = make_error_code(errc::deadline_exceeded);
    EXPECT_THAT(codes, ElementsAre(late, late, canceled));
}

TEST(run_queue_test, a_scope_opened_inside_a_stopped_one_is_stopped) {
    manual_queue queue;
    gate door;
    scope* outer = nullptr;
    scope* inner = nullptr;
    std::error_code code;
    auto deeper = [&]() -> task<> { code = (co_await in_scope(door.wait(), inner)).error(); };
    auto body = [&]() -> task<> {
        outer->stop(stop_reason::deadline);
        co_await deeper();
    };

    queue.run([&]() -> task<> { co_await in_scope(body(), outer); });

    EXPECT_EQ(code, errc::deadline_exceeded);
}

TEST(run_queue_test, a_stop_never_resumes_anything_itself) {
    manual_queue queue;
    gate door;
    bool resumed = false;
    auto handle = queue.spawn([&]() -> task<> {
        (void)co_await door.wait();
        resumed = true;
    });
    queue.turn_until_idle();

    handle.request_stop();

    EXPECT_FALSE(resumed);
    EXPECT_FALSE(door.waited_at());
    queue.turn_until_idle();
    EXPECT_TRUE(resumed);
}

TEST(run_queue_test, a_refused_operation_goes_through_the_ready_list) {
    manual_queue queue;
    gate door;
    std::vector<int> log;
    auto handle = queue.spawn([&]() -> task<> {
        for (int i = 0; i < 2; ++i) {
            (void)co_await door.wait();
            log.push_back(i);
        }
    });
    handle.request_stop();

    EXPECT_EQ(queue.turn(), 1U);
    EXPECT_THAT(log, ElementsAre());
    queue.turn();
    EXPECT_THAT(log, ElementsAre(0));
    queue.turn();
    EXPECT_THAT(log, ElementsAre(0, 1));
}

TEST(run_queue_test, a_task_that_stops_itself_is_refused_from_its_next_operation_on) {
    manual_queue queue;
    gate door;
    std::optional<join_handle<int>> self;
    int after = 0;
    self = queue.spawn([&]() -> task<int> {
        self->request_stop();
        after = 1;
        co_return (co_await door.wait()) ? 1 : 2;
    });

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await *self; }), 2);
    EXPECT_EQ(after, 1);
}

TEST(run_queue_test, success_beats_a_later_stop) {
    manual_queue queue;
    gate door;
    auto handle =
        queue.spawn([&]() -> task<int> { co_return (co_await door.wait()).value_or(-1); });
    queue.turn_until_idle();

    door.open(5);
    handle.request_stop();

    EXPECT_EQ(queue.run([&]() -> task<int> { co_return co_await handle; }), 5);
}

// Teardown: the work of a loop's destructor.

TEST(teardown_test, stops_every_task_and_runs_until_they_have_ended) {
    gate door;
    std::vector<int> log;
    {
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            witness local{log, 2};
            if (!co_await door.wait()) log.push_back(1);
        });
        queue.turn_until_idle();
    }
    EXPECT_THAT(log, ElementsAre(1, 2));
}

TEST(teardown_test, runs_tasks_that_had_not_started_and_refuses_their_operations) {
    gate door;
    bool refused = false;
    {
        manual_queue queue;
        queue.spawn([&]() -> task<> { refused = !co_await door.wait(); });
    }
    EXPECT_TRUE(refused);
    EXPECT_EQ(door.refusals, 1);
}

TEST(teardown_test, reaches_inside_a_shield) {
    gate door;
    bool refused = false;
    {
        manual_queue queue;
        queue.spawn([&]() -> task<> { refused = !co_await shield(door.wait()); });
        queue.turn_until_idle();
    }
    EXPECT_TRUE(refused);
}

// The scope keeps its first reason, by which a later shield could mistake the teardown for a mere
// stop, and hold.
TEST(teardown_test, reaches_inside_a_later_shield_of_a_task_that_was_stopped_before) {
    gate door;
    std::vector<bool> refused;
    {
        manual_queue queue;
        auto handle = queue.spawn([&]() -> task<> {
            refused.push_back(!co_await shield(door.wait()));
            refused.push_back(!co_await shield(door.wait()));
        });
        queue.turn_until_idle();
        handle.request_stop();
    }
    EXPECT_THAT(refused, ElementsAre(true, true));
}

TEST(teardown_test, does_not_resume_a_task_again_after_a_thousand_refusals) {
    const auto frames = detail::live_frames();
    gate door;
    std::vector<int> log;
    int resumed = 0;
    {
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            witness local{log, 1};
            for (;; ++resumed)
                (void)co_await door.wait();
        });
        queue.turn_until_idle();
    }
    // The wait that teardown found in progress, and a thousand refusals.
    EXPECT_EQ(resumed, 1001);
    EXPECT_THAT(log, ElementsAre(1));
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(teardown_test, ends_tasks_that_only_yield) {
    const auto frames = detail::live_frames();
    {
        auto endless = []() -> task<> {
            for (;;)
                co_await yield();
        };
        manual_queue queue;
        auto stopped_before = queue.spawn(endless());
        queue.spawn(endless());
        queue.turn();
        stopped_before.request_stop();
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

// Each round makes new chains, each with its own thousand refusals.
TEST(teardown_test, ends_tasks_that_keep_awaiting_combinators_and_children) {
    const auto frames = detail::live_frames();
    gate door;
    {
        auto refused = [&]() -> task<> { (void)co_await door.wait(); };
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            for (;;)
                co_await when_all(refused(), refused());
        });
        queue.spawn([&]() -> task<> {
            for (;;)
                co_await spawn(refused());
        });
        queue.spawn([&]() -> task<> {
            for (;;) {
                task_group group;
                group.spawn(refused());
                (void)co_await group.join();
            }
        });
        queue.turn_until_idle();
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(teardown_test, ends_a_task_that_spawns_its_successor) {
    const auto frames = detail::live_frames();
    gate door;
    struct ticker {
        gate& door;
        int ticks = 0;
        task<> tick() {
            (void)co_await door.wait();
            if (++ticks < 1'000'000) spawn(tick());
        }
    } ticker{door};
    {
        manual_queue queue;
        queue.spawn(ticker.tick());
        queue.turn_until_idle();
    }
    EXPECT_LE(ticker.ticks, 1002);
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(teardown_test, lets_a_task_with_many_children_clean_up) {
    gate door;
    int cleaned = 0;
    {
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            task_group group;
            for (int i = 0; i < 3000; ++i) {
                group.spawn([&]() -> task<> {
                    (void)co_await door.wait();
                    ++cleaned;
                });
            }
            (void)co_await group.join();
            ++cleaned;
        });
    }
    EXPECT_EQ(cleaned, 3001);
}

TEST(teardown_test, destroys_the_frames_of_the_stubborn_newest_first) {
    gate door;
    std::vector<int> log;
    {
        auto stubborn = [&](int mark) -> task<> {
            witness local{log, mark};
            for (;;)
                (void)co_await door.wait();
        };
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            witness local{log, 1};
            task_group group;
            group.spawn(stubborn(2));
            group.spawn(stubborn(3));
            (void)co_await group.join();
        });
        queue.spawn(stubborn(4));
        queue.turn_until_idle();
    }
    // 4 was spawned before the children of 1.
    EXPECT_THAT(log, ElementsAre(3, 2, 4, 1));
}

TEST(teardown_test, destroys_tasks_that_await_stubborn_ones) {
    const auto frames = detail::live_frames();
    gate door;
    {
        auto stubborn = [&]() -> task<int> {
            for (;;)
                (void)co_await door.wait();
        };
        manual_queue queue;
        queue.spawn([&]() -> task<> { (void)co_await when_any(stubborn(), shield(stubborn())); });
        queue.spawn([&]() -> task<> {
            auto handle = spawn(stubborn());
            (void)co_await handle;
        });
        queue.spawn([&]() -> task<> { (void)co_await spawn(stubborn()); });
        queue.turn_until_idle();
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

// A younger task may own the group, whose children must not outlive it.
TEST(teardown_test, destroys_children_before_a_group_that_a_younger_task_owns) {
    const auto frames = detail::live_frames();
    gate door;
    {
        auto stubborn = [&]() -> task<> {
            for (;;)
                (void)co_await door.wait();
        };
        auto owner = [](std::unique_ptr<task_group> group) -> task<> {
            (void)co_await group->join();
        };
        manual_queue queue;
        queue.spawn([&]() -> task<> {
            auto group = std::make_unique<task_group>();
            group->spawn(stubborn());
            spawn(owner(std::move(group)));
            co_return;
        });
        queue.turn_until_idle();
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(teardown_test, survives_destructors_that_spawn_and_stop) {
    const auto frames = detail::live_frames();
    gate door;
    struct on_exit {
        join_handle<void>* other;
        ~on_exit() {
            other->request_stop();
            spawn([]() -> task<> { co_return; });
        }
    };
    {
        auto stubborn = [&]() -> task<> {
            for (;;)
                (void)co_await door.wait();
        };
        manual_queue queue;
        auto other = queue.spawn(stubborn());
        queue.spawn([&]() -> task<> {
            on_exit last{&other};
            co_await stubborn();
        });
        queue.turn_until_idle();
        queue.teardown();
        EXPECT_TRUE(other.done());
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(teardown_test, ends_tasks_that_wait_for_each_other) {
    const auto frames = detail::live_frames();
    {
        manual_queue queue;
        std::optional<join_handle<void>> first;
        std::optional<join_handle<void>> second;
        first = queue.spawn([&]() -> task<> { co_await *second; });
        second = queue.spawn([&]() -> task<> { co_await *first; });
        queue.turn_until_idle();
        queue.teardown();
    }
    EXPECT_EQ(detail::live_frames(), frames);
}

TEST(run_queue_death_test, spawning_on_a_thread_without_one_is_a_contract_violation) {
    EXPECT_DEATH(spawn([]() -> task<> { co_return; }), "needs a running event loop");
}

TEST(run_queue_death_test, two_on_one_thread_are_a_contract_violation) {
    auto nested = [] {
        manual_queue outer;
        manual_queue inner;
    };
    EXPECT_DEATH(nested(), "an event loop runs on this thread already");
}

} // namespace
} // namespace simplenet::v0
