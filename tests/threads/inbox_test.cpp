#include "threads/inbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A posted item that knows its thread and its number among the items of that thread.
class item final : public posted {
public:
    explicit item(std::size_t number = 0, std::size_t thread = 0) noexcept
        : number{number}
        , thread{thread} {}
    void run() noexcept override {}
    void drop() noexcept override {}

    std::size_t number;
    std::size_t thread;
};

/// The numbers of the items in the inbox, in the order in which a loop would run them.
std::vector<std::size_t> taken(inbox& from) {
    std::vector<std::size_t> numbers;
    for (posted* list = from.take(); list != nullptr;)
        numbers.push_back(static_cast<item&>(inbox::pop(list)).number);
    return numbers;
}

TEST(inbox_test, take_returns_all_items_oldest_first) {
    inbox box;
    std::array items{item{1}, item{2}, item{3}};
    for (item& each : items)
        EXPECT_FALSE(box.push(each));

    EXPECT_THAT(taken(box), ElementsAre(1, 2, 3));
    EXPECT_THAT(taken(box), IsEmpty());
}

TEST(inbox_test, is_empty_before_a_push_and_after_a_take) {
    inbox box;
    item one{1};
    EXPECT_TRUE(box.empty());
    EXPECT_EQ(box.take(), nullptr);

    EXPECT_FALSE(box.push(one));
    EXPECT_FALSE(box.empty());

    EXPECT_THAT(taken(box), ElementsAre(1));
    EXPECT_TRUE(box.empty());
}

TEST(inbox_test, an_item_may_be_pushed_again_once_it_was_taken) {
    inbox box;
    item one{1};
    for (int round = 0; round < 3; ++round) {
        EXPECT_FALSE(box.push(one));
        EXPECT_THAT(taken(box), ElementsAre(1));
    }
}

TEST(inbox_test, a_running_loop_needs_no_wake_up) {
    inbox box;
    item one;

    EXPECT_FALSE(box.push(one));
    EXPECT_FALSE(box.claim_wake_up());
}

TEST(inbox_test, an_item_that_is_offered_too_late_is_refused) {
    inbox box;
    item in_time{1}, pushed{2}, late;
    EXPECT_EQ(box.offer(in_time), inbox::outcome::taken);

    box.refuse_offers();

    EXPECT_EQ(box.offer(late), inbox::outcome::refused);
    EXPECT_FALSE(box.push(pushed)) << "only offers are refused";
    EXPECT_THAT(taken(box), ElementsAre(1, 2));
    EXPECT_EQ(box.offer(late), inbox::outcome::refused) << "a take does not end the refusal";
}

TEST(inbox_test, a_loop_that_refuses_offers_can_sleep) {
    inbox box;
    item pushed{1}, late;
    box.refuse_offers();

    EXPECT_TRUE(box.park());
    EXPECT_TRUE(box.is_parked());
    EXPECT_EQ(box.offer(late), inbox::outcome::refused);
    EXPECT_TRUE(box.push(pushed));
    box.has_woken();
    box.unpark();

    EXPECT_FALSE(box.is_parked());
    EXPECT_EQ(box.offer(late), inbox::outcome::refused);
    EXPECT_THAT(taken(box), ElementsAre(1));
}

TEST(inbox_test, an_offer_to_a_parked_loop_wakes_it_once) {
    inbox box;
    item one, two;
    EXPECT_TRUE(box.park());

    EXPECT_EQ(box.offer(one), inbox::outcome::asleep);
    EXPECT_EQ(box.offer(two), inbox::outcome::taken);
    EXPECT_TRUE(box.is_parked()) << "it has not noticed";
}

TEST(inbox_test, waits_for_threads_that_wake_the_loop) {
    inbox box;
    item one;
    std::atomic<bool> woken = false;
    EXPECT_TRUE(box.park());
    EXPECT_TRUE(box.push(one));

    std::jthread waker{[&] {
        woken = true;
        box.has_woken();
    }};
    box.wait_for_wakers();

    EXPECT_TRUE(woken);
}

TEST(inbox_test, only_the_first_push_to_a_parked_loop_wakes_it) {
    inbox box;
    std::array<item, 3> items;
    EXPECT_TRUE(box.park());

    EXPECT_TRUE(box.push(items[0]));
    EXPECT_FALSE(box.push(items[1]));
    EXPECT_FALSE(box.push(items[2]));
}

TEST(inbox_test, a_wake_up_without_an_item_is_claimed_once) {
    inbox box;
    item one;
    EXPECT_TRUE(box.park());

    EXPECT_TRUE(box.claim_wake_up());
    EXPECT_FALSE(box.claim_wake_up());
    EXPECT_FALSE(box.push(one));
}

TEST(inbox_test, a_loop_does_not_park_while_an_item_is_waiting) {
    inbox box;
    item one{1}, two{2};
    EXPECT_FALSE(box.push(one));

    EXPECT_FALSE(box.park());

    EXPECT_FALSE(box.push(two)) << "a loop that did not park is running";
    EXPECT_THAT(taken(box), ElementsAre(1, 2));
    EXPECT_TRUE(box.park());
}

TEST(inbox_test, a_loop_that_slept_can_be_woken_again) {
    inbox box;
    for (int round = 0; round < 3; ++round) {
        item one{7};
        EXPECT_TRUE(box.park());
        EXPECT_TRUE(box.push(one));
        box.unpark();
        EXPECT_FALSE(box.claim_wake_up());
        EXPECT_THAT(taken(box), ElementsAre(7));
    }
}

/// The loop's side of an inbox, with a semaphore in place of a backend.
class sleeper {
public:
    void push(item& each) {
        if (box_.push(each)) wake_up_.release();
    }
    /// Sleeps if the inbox is empty, then passes every item to `visit`.
    template <class Visit>
    void turn(Visit visit) {
        if (box_.park()) {
            wake_up_.acquire();
            box_.unpark();
        }
        for (posted* list = box_.take(); list != nullptr;)
            visit(static_cast<item&>(inbox::pop(list)));
    }

private:
    inbox box_;
    std::counting_semaphore<> wake_up_{0};
};

// Hangs if a push between the last look at the list and the sleep goes unnoticed.
TEST(inbox_test, items_of_eight_threads_are_neither_lost_nor_reordered) {
    constexpr std::size_t threads = 8, each_posts = 5'000;
    sleeper loop;
    std::array<std::deque<item>, threads> items;
    std::vector<std::jthread> posters;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        posters.emplace_back([&, thread] {
            for (std::size_t number = 0; number < each_posts; ++number)
                loop.push(items[thread].emplace_back(number, thread));
        });
    }

    std::array<std::size_t, threads> expected{};
    std::size_t out_of_order = 0;
    for (std::size_t seen = 0; seen < threads * each_posts;) {
        loop.turn([&](item& each) {
            out_of_order += each.number != expected[each.thread]++;
            ++seen;
        });
    }

    EXPECT_EQ(out_of_order, 0U);
}

} // namespace
} // namespace simplenet::v0::detail
