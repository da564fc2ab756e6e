// Room that many answers share.

#include "http/gateway/shared_room.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::disk_room;
using http::detail::room_share;
using http::detail::shared_room;

TEST(disk_room_test, those_who_have_more_are_asked_for_room) {
    const std::chrono::steady_clock::time_point now{1h};
    disk_room room{1000};
    EXPECT_FALSE(room.is_asked_by_less(now, 1000));

    room.ask_for_room(now, 100);
    EXPECT_TRUE(room.is_asked_by_less(now, 101));
    EXPECT_FALSE(room.is_asked_by_less(now, 100));

    // One that has more does not speak louder, nor longer.
    room.ask_for_room(now + 1s, 200);
    EXPECT_TRUE(room.is_asked_by_less(now + 1999ms, 101));
    EXPECT_FALSE(room.is_asked_by_less(now + 2s, 1000));
    room.ask_for_room(now + 2s, 200);
    EXPECT_FALSE(room.is_asked_by_less(now + 2s, 200));
    EXPECT_TRUE(room.is_asked_by_less(now + 2s, 201));

    room.ask_for_room(now + 3s, 50);
    EXPECT_TRUE(room.is_asked_by_less(now + 3s, 51));
}

TEST(shared_room_test, those_who_take_all_they_can_leave_as_much_as_each_of_them_has) {
    constexpr std::uint64_t all = 10'000;
    shared_room room{all};
    std::array<std::uint64_t, 9> taken{};
    for (bool has_grown = true; has_grown;) {
        has_grown = false;
        for (std::uint64_t& each : taken) {
            if (!room.take(10, each)) continue;
            each += 10;
            has_grown = true;
        }
    }

    EXPECT_THAT(taken, ::testing::Each(all / 10));
    EXPECT_EQ(room.left(), all / 10);
}

TEST(room_share_test, what_is_not_given_back_is_at_the_end) {
    const auto room = std::make_shared<shared_room>(100);
    {
        room_share share{room};
        EXPECT_TRUE(share.grow(30));
        EXPECT_TRUE(share.grow(20));
        EXPECT_FALSE(share.grow(1)); // not more than it leaves
        share.shrink(15);
        EXPECT_EQ(share.bytes(), 35U);
        EXPECT_EQ(room->left(), 65U);
    }
    EXPECT_EQ(room->left(), 100U);
}

TEST(room_share_test, without_a_room_there_is_no_limit) {
    room_share share{nullptr};
    EXPECT_TRUE(share.grow(std::uint64_t{1} << 40U));
    EXPECT_EQ(share.bytes(), std::uint64_t{1} << 40U);
}

} // namespace
} // namespace simplenet::v0::testing
