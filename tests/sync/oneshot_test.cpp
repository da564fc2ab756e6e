#include <simplenet/sync/oneshot.hpp>

#include "support/manual_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::manual_queue;

class oneshot_test : public ::testing::Test {
protected:
    auto receive(oneshot<std::string>& from) {
        return queue.spawn([this, &from]() -> task<> {
            auto got = co_await from.receive();
            if (got) text = *std::move(got);
            if (!got) error = got.error();
        });
    }

    std::string text;
    std::error_code error;
    manual_queue queue;
};

TEST_F(oneshot_test, delivers_the_value_to_a_waiter) {
    oneshot<std::string> answer;
    auto sender = answer.make_sender();
    receive(answer);
    queue.turn_until_idle();

    EXPECT_TRUE(sender.send("forty-two"));
    queue.turn_until_idle();

    EXPECT_EQ(text, "forty-two");
}

TEST_F(oneshot_test, keeps_a_value_that_is_sent_first) {
    oneshot<std::string> answer;
    EXPECT_FALSE(answer.is_ready());
    EXPECT_TRUE(answer.make_sender().send("early"));
    EXPECT_TRUE(answer.is_ready());

    receive(answer);
    EXPECT_EQ(queue.turn(), 1U); // at once

    EXPECT_EQ(text, "early");
    receive(answer); // there is only one
    queue.turn_until_idle();
    EXPECT_EQ(error, errc::end_of_stream);
}

TEST_F(oneshot_test, a_dropped_sender_ends_the_wait) {
    oneshot<std::string> answer;
    std::optional sender{answer.make_sender()};
    auto moved = *std::move(sender);
    sender.reset();
    receive(answer);
    queue.turn_until_idle();
    EXPECT_FALSE(error);

    {
        const auto dropped = std::move(moved);
    }
    queue.turn_until_idle();

    EXPECT_EQ(error, errc::end_of_stream);
}

TEST_F(oneshot_test, a_value_without_a_receiver_stays_with_the_sender) {
    std::optional<oneshot<std::unique_ptr<int>>> answer{std::in_place};
    auto sender = answer->make_sender();
    EXPECT_TRUE(sender.is_wanted());
    answer.reset();

    auto value = std::make_unique<int>(1);
    EXPECT_FALSE(sender.is_wanted());
    EXPECT_EQ(sender.send(std::move(value)).error(), std::errc::broken_pipe);

    EXPECT_NE(value, nullptr);
}

TEST_F(oneshot_test, a_stopped_receive_leaves_the_value_for_the_next) {
    oneshot<std::string> answer;
    auto sender = answer.make_sender();
    auto handle = receive(answer);
    queue.turn_until_idle();
    handle.request_stop();
    EXPECT_TRUE(sender.send("late"));
    queue.turn_until_idle();
    EXPECT_EQ(error, std::errc::operation_canceled);

    receive(answer);
    queue.turn_until_idle();

    EXPECT_EQ(text, "late");
}

TEST_F(oneshot_test, its_destruction_ends_the_wait) {
    std::optional<oneshot<std::string>> answer{std::in_place};
    auto sender = answer->make_sender();
    receive(*answer);
    queue.turn_until_idle();

    answer.reset();
    queue.turn_until_idle();

    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST_F(oneshot_test, a_sender_assigned_over_is_dropped) {
    oneshot<std::string> one, other;
    auto sender = one.make_sender();
    receive(one);
    queue.turn_until_idle();

    sender = other.make_sender();
    queue.turn_until_idle();

    EXPECT_EQ(error, errc::end_of_stream);
    EXPECT_TRUE(sender.send("to the other"));
    EXPECT_TRUE(other.is_ready());
}

using oneshot_death_test = oneshot_test;

TEST_F(oneshot_death_test, a_second_value_is_a_violation) {
    oneshot<int> answer;
    auto sender = answer.make_sender();
    EXPECT_TRUE(sender.send(1));
    EXPECT_DEATH(static_cast<void>(sender.send(2)), "one value");
    EXPECT_DEATH(static_cast<void>(answer.make_sender()), "one sender");
}

} // namespace
} // namespace simplenet::v0
