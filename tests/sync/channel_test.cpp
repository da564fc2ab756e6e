#include <simplenet/sync/channel.hpp>

#include "support/coroutines.hpp"
#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>

#include <gmock/gmock.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using ::testing::ElementsAre;
using testing::gate;
using testing::manual_queue;

class channel_test : public ::testing::Test {
protected:
    auto send(channel<int>& to, int value) {
        return queue.spawn([this, &to, value]() -> task<> {
            const auto sent = co_await to.send(value);
            sends.push_back(sent ? value : -value);
            if (!sent) error = sent.error();
        });
    }
    auto receive(channel<int>& from) {
        return queue.spawn([this, &from]() -> task<> {
            const auto received = co_await from.receive();
            values.push_back(received.value_or(0));
            if (!received) error = received.error();
        });
    }

    std::vector<int> sends;
    std::vector<int> values;
    std::error_code error;
    manual_queue queue;
};

TEST_F(channel_test, takes_as_many_values_as_its_capacity_and_then_waits) {
    channel<int> values_in{2};
    for (int value : {1, 2, 3, 4})
        send(values_in, value);
    queue.turn_until_idle();
    EXPECT_THAT(sends, ElementsAre(1, 2));
    EXPECT_EQ(values_in.size(), 2U);

    for (int each = 0; each < 4; ++each)
        receive(values_in);
    queue.turn_until_idle();

    EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(sends, ElementsAre(1, 2, 3, 4));
    EXPECT_TRUE(values_in.empty());
}

TEST_F(channel_test, serves_receivers_in_the_order_of_their_arrival) {
    channel<int> empty{2};
    std::vector<int> order;
    for (int number : {10, 20, 30}) {
        queue.spawn([&, number]() -> task<> {
            const int value = or_throw(co_await empty.receive());
            order.push_back(number + value);
        });
    }
    queue.turn_until_idle();

    for (int value : {1, 2, 3})
        send(empty, value);
    queue.turn_until_idle();

    EXPECT_THAT(order, ElementsAre(11, 22, 33));
}

TEST_F(channel_test, of_capacity_0_hands_values_over_directly) {
    channel<int> rendezvous{0};
    send(rendezvous, 1);
    send(rendezvous, 2);
    queue.turn_until_idle();
    EXPECT_TRUE(sends.empty());

    receive(rendezvous);
    queue.turn_until_idle();
    EXPECT_THAT(values, ElementsAre(1));
    EXPECT_THAT(sends, ElementsAre(1));

    receive(rendezvous);
    receive(rendezvous);
    queue.turn_until_idle();
    send(rendezvous, 3);
    queue.turn_until_idle();
    EXPECT_THAT(values, ElementsAre(1, 2, 3));
    EXPECT_THAT(sends, ElementsAre(1, 2, 3));
}

TEST_F(channel_test, is_received_to_its_end_after_close) {
    channel<int> numbers{4};
    send(numbers, 1);
    send(numbers, 2);
    queue.turn_until_idle();

    numbers.close();
    numbers.close();
    for (int each = 0; each < 3; ++each)
        receive(numbers);
    queue.turn_until_idle();

    EXPECT_THAT(values, ElementsAre(1, 2, 0));
    EXPECT_EQ(error, errc::end_of_stream);
    EXPECT_TRUE(numbers.is_closed());
}

TEST_F(channel_test, close_ends_the_waits) {
    channel<int> empty{1};
    receive(empty);
    receive(empty);
    queue.turn_until_idle();
    empty.close();
    queue.turn_until_idle();
    EXPECT_THAT(values, ElementsAre(0, 0));
    EXPECT_EQ(error, errc::end_of_stream);

    channel<int> full{1};
    send(full, 1);
    send(full, 2);
    queue.turn_until_idle();
    full.close();
    queue.turn_until_idle();
    EXPECT_THAT(sends, ElementsAre(1, -2));
    EXPECT_EQ(error, std::errc::broken_pipe);
    EXPECT_EQ(or_throw(full.try_receive()), 1);
    EXPECT_EQ(full.try_receive().error(), errc::end_of_stream); // 2 was not accepted
}

TEST_F(channel_test, a_send_to_a_closed_one_fails) {
    channel<int> closed{1};
    closed.close();
    send(closed, 1);
    queue.turn_until_idle();

    EXPECT_EQ(error, std::errc::broken_pipe);
    EXPECT_EQ(closed.try_send(1).error(), std::errc::broken_pipe);
}

TEST_F(channel_test, try_forms_never_wait) {
    channel<std::unique_ptr<int>> pointers{1};
    auto first = std::make_unique<int>(1);
    auto second = std::make_unique<int>(2);

    EXPECT_EQ(pointers.try_receive().error(), std::errc::operation_would_block);
    EXPECT_TRUE(pointers.try_send(std::move(first)));
    EXPECT_EQ(first, nullptr);
    EXPECT_EQ(pointers.try_send(std::move(second)).error(), errc::queue_full);
    EXPECT_NE(second, nullptr); // the sender still owns it
    EXPECT_EQ(**pointers.try_receive(), 1);
}

TEST_F(channel_test, try_forms_serve_waiters) {
    channel<int> rendezvous{0};
    EXPECT_EQ(rendezvous.try_send(1).error(), errc::queue_full);
    receive(rendezvous);
    queue.turn_until_idle();
    EXPECT_TRUE(rendezvous.try_send(1));
    queue.turn_until_idle();
    EXPECT_THAT(values, ElementsAre(1));

    EXPECT_EQ(rendezvous.try_receive().error(), std::errc::operation_would_block);
    send(rendezvous, 2);
    queue.turn_until_idle();
    EXPECT_EQ(or_throw(rendezvous.try_receive()), 2);
    queue.turn_until_idle();
    EXPECT_THAT(sends, ElementsAre(2));
}

TEST_F(channel_test, a_stopped_receive_takes_nothing) {
    channel<int> empty{1};
    auto handle = receive(empty);
    receive(empty);
    queue.turn_until_idle();

    handle.request_stop();
    send(empty, 1);
    queue.turn_until_idle();

    EXPECT_THAT(values, ElementsAre(0, 1));
    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST_F(channel_test, a_value_being_delivered_beats_a_stop) {
    channel<int> empty{1};
    auto handle = receive(empty);
    queue.turn_until_idle();

    EXPECT_TRUE(empty.try_send(1));
    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(values, ElementsAre(1));
}

TEST_F(channel_test, a_stopped_send_is_never_received) {
    channel<int> full{1};
    send(full, 1);
    auto handle = send(full, 2);
    send(full, 3);
    queue.turn_until_idle();

    handle.request_stop();
    for (int each = 0; each < 2; ++each)
        receive(full);
    queue.turn_until_idle();

    EXPECT_THAT(values, ElementsAre(1, 3));
    EXPECT_THAT(sends, ::testing::UnorderedElementsAre(1, -2, 3));
}

TEST_F(channel_test, a_send_whose_value_was_taken_beats_a_stop) {
    channel<int> full{1};
    send(full, 1);
    auto handle = send(full, 2);
    queue.turn_until_idle();

    EXPECT_EQ(or_throw(full.try_receive()), 1);
    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_THAT(sends, ElementsAre(1, 2));
    EXPECT_EQ(or_throw(full.try_receive()), 2);
}

TEST_F(channel_test, send_from_leaves_the_value_with_the_caller_unless_it_succeeds) {
    channel<std::unique_ptr<int>> pointers{1};
    auto first = std::make_unique<int>(1);
    auto second = std::make_unique<int>(2);
    auto handle = queue.spawn([&]() -> task<> {
        EXPECT_TRUE(co_await pointers.send_from(first));
        EXPECT_FALSE(co_await pointers.send_from(second));
        EXPECT_FALSE(co_await pointers.send_from(second));
    });
    queue.turn_until_idle();

    handle.request_stop();
    queue.turn_until_idle();

    EXPECT_EQ(first, nullptr);
    EXPECT_EQ(*second, 2);
}

TEST_F(channel_test, a_stopped_scope_is_refused_by_way_of_the_ready_list) {
    channel<int> ready{2};
    EXPECT_TRUE(ready.try_send(1));
    gate door;
    auto handle = queue.spawn([&]() -> task<> {
        (void)co_await door.wait();
        values.push_back((co_await ready.receive()).value_or(0));
        sends.push_back(co_await ready.send(2) ? 2 : -2);
    });
    queue.turn_until_idle();
    handle.request_stop();

    queue.turn();
    EXPECT_TRUE(values.empty());
    queue.turn();
    EXPECT_THAT(values, ElementsAre(0));
    EXPECT_TRUE(sends.empty());
    queue.turn();

    EXPECT_THAT(sends, ElementsAre(-2));
    EXPECT_EQ(ready.size(), 1U);
}

TEST_F(channel_test, its_destruction_ends_the_waits_and_destroys_the_values) {
    auto shared = std::make_shared<int>(1);
    std::optional<channel<std::shared_ptr<int>>> pointers{1};
    std::vector<std::error_code> errors;
    queue.spawn([&]() -> task<> {
        EXPECT_TRUE(co_await pointers->send(shared));
        errors.push_back((co_await pointers->send(shared)).error());
    });
    queue.turn_until_idle();
    EXPECT_EQ(shared.use_count(), 3);

    pointers.reset();
    queue.turn_until_idle();

    EXPECT_THAT(errors, ElementsAre(std::errc::operation_canceled));
    EXPECT_EQ(shared.use_count(), 1);
}

TEST_F(channel_test, the_winner_of_when_any_takes_a_value_and_the_loser_none) {
    channel<int> left{1}, right{1};
    queue.spawn([&]() -> task<> {
        auto any = co_await when_any(left.receive(), right.receive());
        EXPECT_EQ(any.index, 1U);
        EXPECT_EQ(or_throw(*std::get<1>(any.values)), 5);
    });
    queue.turn_until_idle();

    EXPECT_TRUE(right.try_send(5));
    queue.turn_until_idle();
    EXPECT_EQ(queue.live(), 0U);

    EXPECT_TRUE(left.try_send(6));
    EXPECT_EQ(left.size(), 1U);
}

TEST_F(channel_test, operations_without_waiting_are_budgeted) {
    channel<int> numbers{1};
    bool other = false;
    auto handle = queue.spawn([&]() -> task<> {
        while (!other) {
            EXPECT_TRUE(co_await numbers.send(1));
            EXPECT_TRUE(co_await numbers.receive());
        }
    });
    queue.spawn([&]() -> task<> {
        other = true;
        co_return;
    });

    queue.turn_until_idle();

    EXPECT_TRUE(handle.done());
}

TEST_F(channel_test, the_end_of_a_loop_ends_the_waits) {
    channel<int> full{1};
    channel<int> empty{1};
    send(full, 1);
    send(full, 2);
    receive(empty);
    queue.turn_until_idle();

    queue.teardown();

    EXPECT_THAT(sends, ElementsAre(1, -2));
    EXPECT_THAT(values, ElementsAre(0));
}

/// Every value arrives once and in the order of its sender, or its sender knows that it did not.
TEST_F(channel_test, neither_loses_nor_duplicates_values_under_random_stops) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        testing::dice dice{seed};
        channel<std::unique_ptr<int>> numbers{dice.up_to(3)};
        std::vector<int> accepted;
        std::vector<int> received;
        std::vector<join_handle<>> handles;
        for (int sender = 0; sender < 4; ++sender) {
            handles.push_back(queue.spawn([&, sender]() -> task<> {
                for (int each = 0; each < 10; ++each) {
                    auto value = std::make_unique<int>(sender * 100 + each);
                    if (dice.one_in(3)) co_await yield();
                    if (!co_await numbers.send_from(value)) {
                        EXPECT_NE(value, nullptr);
                        co_return;
                    }
                    EXPECT_EQ(value, nullptr);
                    accepted.push_back(sender * 100 + each);
                }
            }));
            handles.push_back(queue.spawn([&]() -> task<> {
                for (;;) {
                    if (dice.one_in(3)) co_await yield();
                    const auto value = co_await numbers.receive();
                    if (!value) co_return;
                    received.push_back(**value);
                }
            }));
        }
        for (int step = 0; step < 12; ++step) {
            queue.turn();
            if (dice.one_in(3)) handles[dice.up_to(handles.size() - 1)].request_stop();
        }
        numbers.close();
        queue.turn_until_idle();
        while (auto rest = numbers.try_receive())
            received.push_back(**rest);

        std::ranges::sort(accepted);
        std::ranges::sort(received);
        ASSERT_EQ(accepted, received);
        ASSERT_EQ(queue.live(), 0U);
    }
}

} // namespace
} // namespace simplenet::v0
