#include <simplenet/io/scratch.hpp>

#include "support/counted_allocations.hpp"

#include <simplenet/coro/detail/frame_allocator.hpp>
#include <simplenet/runtime/event_loop.hpp>

#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

/// The allocations of `act`.
template <class Act>
std::size_t allocations_of(Act act) {
    const std::size_t before = testing::allocations;
    act();
    return testing::allocations - before;
}

constexpr bool caches = detail::recycles_frames;

TEST(scratch_test, it_has_as_many_bytes_as_were_borrowed) {
    for (const std::size_t size :
         {1U, 7U, 1023U, 1024U, 1025U, 16'384U, 131'072U, 131'073U, 1'000'000U}) {
        const scratch memory = scratch::borrow(size);
        EXPECT_EQ(memory.size(), size);
        EXPECT_EQ(memory.bytes().size(), size);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(std::max_align_t), 0U);
        std::memset(memory.data(), 42, memory.size()); // sanitizers check the bounds
        const mutable_buffer into = memory;
        EXPECT_EQ(into.data(), memory.data());
        EXPECT_EQ(into.size(), size);
    }
    EXPECT_EQ(scratch::borrow(0).size(), 0U);
}

TEST(scratch_test, an_empty_one_holds_nothing) {
    scratch none;
    EXPECT_EQ(none.data(), nullptr);
    EXPECT_EQ(none.size(), 0U);
    none.release();
}

TEST(scratch_test, what_was_given_back_is_borrowed_again_without_an_allocation) {
    if (!caches) GTEST_SKIP() << "every block goes back to the system under AddressSanitizer";
    const std::byte* const first = scratch::borrow(10'000).data();
    const std::size_t made = allocations_of([&] {
        for (int round = 0; round < 100; ++round) {
            const scratch memory = scratch::borrow(9'000 + static_cast<std::size_t>(round));
            EXPECT_EQ(memory.data(), first); // the last one given back: it is in the cache
        }
    });
    EXPECT_EQ(made, 0U);
}

TEST(scratch_test, two_that_are_borrowed_do_not_overlap) {
    std::vector<scratch> all;
    for (int each = 0; each < 50; ++each) {
        all.push_back(scratch::borrow(3000));
        std::memset(all.back().data(), each, 3000);
        if (each % 7 == 3) all.erase(all.begin());
    }
    for (const scratch& each : all) {
        for (const std::byte byte : each.bytes())
            ASSERT_EQ(byte, each.data()[0]);
    }
    for (std::size_t at = 1; at < all.size(); ++at)
        EXPECT_NE(all[at].data()[0], all[at - 1].data()[0]);
}

TEST(scratch_test, a_move_leaves_nothing_behind) {
    scratch first = scratch::borrow(5000);
    std::byte* const data = first.data();
    scratch second = std::move(first);
    EXPECT_EQ(first.data(), nullptr); // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(first.size(), 0U);
    EXPECT_EQ(second.data(), data);
    first = scratch::borrow(100);
    first = std::move(second); // gives the 100 bytes back
    EXPECT_EQ(first.data(), data);
    EXPECT_EQ(first.size(), 5000U);
    first.release();
    EXPECT_EQ(first.data(), nullptr);
}

TEST(scratch_test, the_cache_has_a_limit) {
    const auto expect_given_back = [](std::size_t size, std::size_t count) {
        std::vector<scratch> all(count);
        for (scratch& each : all)
            each = scratch::borrow(size);
        const std::size_t before = testing::live_bytes;
        for (scratch& each : all)
            each.release();
        EXPECT_GE(before - testing::live_bytes + (1U << 20U), count * size);
    };
    std::thread{[&] {
        expect_given_back(131'072, 100);
        expect_given_back(1024, 10'000);
    }}.join();
}

TEST(scratch_test, the_cache_of_a_thread_ends_with_the_thread) {
    const std::size_t before = testing::live_bytes;
    std::thread{[] {
        for (const std::size_t size : {1000U, 5000U, 100'000U})
            static_cast<void>(scratch::borrow(size));
    }}.join();
    EXPECT_LE(testing::live_bytes, before + 1000); // what the thread itself leaves
}

TEST(scratch_test, it_outlives_its_loop_and_may_end_on_another_thread) {
    std::optional<scratch> memory;
    std::thread{[&] {
        event_loop loop = or_throw(event_loop::create());
        loop.post([&] { memory = scratch::borrow(20'000); });
        loop.run();
    }}.join();
    ASSERT_TRUE(memory);
    std::memset(memory->data(), 1, memory->size());
    memory.reset();
}

/// Ends after the cache of its thread.
struct late_user {
    scratch memory;
    ~late_user() { memory = scratch{}; }
};

TEST(scratch_test, it_may_end_while_its_thread_ends) {
    std::thread{[] {
        static thread_local late_user late;
        late.memory = scratch::borrow(4000);
        static_cast<void>(scratch::borrow(4000)); // opens the cache, which so ends first
    }}.join();
}

} // namespace
} // namespace simplenet::v0
