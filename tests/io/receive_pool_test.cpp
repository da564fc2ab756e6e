#include "io/receive_pool.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/received.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace simplenet::v0::detail {
namespace {

constexpr std::size_t buffer_size = receive_pool::buffer_size;

class counting_observer final : public receive_pool::observer {
public:
    void buffer_returned() noexcept override { ++returned; }
    int returned = 0;
};

class receive_pool_test : public ::testing::Test {
protected:
    void TearDown() override { abandon(); }

    receive_pool& make(std::size_t buffers) {
        pool_ = or_throw(receive_pool::create(buffers * buffer_size, &listener));
        return *pool_;
    }
    void abandon() {
        if (pool_ != nullptr) std::exchange(pool_, nullptr)->abandon();
    }
    static std::uint32_t count_for(std::size_t bytes) {
        receive_pool* const pool = or_throw(receive_pool::create(bytes, nullptr));
        const std::uint32_t count = pool->count();
        pool->abandon();
        return count;
    }
    received lease(std::uint32_t buffer, std::size_t size = 1) {
        pool_->lend();
        return {*pool_, buffer, pool_->memory(buffer), size};
    }

    counting_observer listener;

private:
    receive_pool* pool_ = nullptr;
};

/// The pages of a buffer that occupy memory; -1 if not even its addresses are reserved.
int resident_pages(const std::byte* buffer) {
    std::vector<unsigned char> pages(buffer_size / 4096);
    if (::mincore(const_cast<std::byte*>(buffer), buffer_size, pages.data()) != 0) return -1;
    int count = 0;
    for (const unsigned char each : pages)
        count += each & 1;
    return count;
}

TEST_F(receive_pool_test, its_size_is_rounded_up_to_whole_buffers_and_to_two) {
    EXPECT_EQ(count_for(0), 2U);
    EXPECT_EQ(count_for(1), 2U);
    EXPECT_EQ(count_for(3 * buffer_size), 3U);
    EXPECT_EQ(count_for(3 * buffer_size + 1), 4U);
}

TEST_F(receive_pool_test, its_size_is_limited_to_the_capacity_of_a_kernel_ring) {
    EXPECT_EQ(count_for(1'000'000 * buffer_size), 32768U);
    EXPECT_EQ(count_for(std::numeric_limits<std::size_t>::max()), 32768U);
}

TEST_F(receive_pool_test, claim_hands_out_every_buffer_once_and_then_none) {
    receive_pool& pool = make(16);

    std::set<std::uint32_t> claimed;
    for (int n = 0; n < 16; ++n)
        EXPECT_TRUE(claimed.insert(pool.claim()).second);

    EXPECT_FALSE(claimed.contains(receive_pool::none));
    EXPECT_EQ(pool.claim(), receive_pool::none);
}

TEST_F(receive_pool_test, buffers_do_not_overlap) {
    receive_pool& pool = make(4);
    for (std::uint32_t each = 0; each < 4; ++each)
        std::memset(pool.memory(each), static_cast<int>(each + 1), buffer_size);

    for (std::uint32_t each = 0; each < 4; ++each) {
        EXPECT_EQ(pool.memory(each)[0], std::byte(each + 1));
        EXPECT_EQ(pool.memory(each)[buffer_size - 1], std::byte(each + 1));
    }
}

TEST_F(receive_pool_test, the_buffer_returned_last_is_reused_first) {
    receive_pool& pool = make(4);
    const auto first = pool.claim(), second = pool.claim();

    pool.give_back(first);
    pool.give_back(second);

    EXPECT_EQ(pool.claim(), second);
    EXPECT_EQ(pool.claim(), first);
}

TEST_F(receive_pool_test, only_used_buffers_occupy_memory) {
    receive_pool& pool = make(8);
    EXPECT_EQ(resident_pages(pool.memory(0)), 0);

    pool.memory(0)[0] = std::byte{1};

    EXPECT_GT(resident_pages(pool.memory(0)), 0);
    EXPECT_EQ(resident_pages(pool.memory(7)), 0);
}

TEST_F(receive_pool_test, a_lease_returns_its_buffer_and_notifies_the_listener) {
    receive_pool& pool = make(2);
    const auto buffer = pool.claim();
    {
        const received bytes = lease(buffer);
        EXPECT_EQ(listener.returned, 0);
    }

    EXPECT_EQ(listener.returned, 1);
    EXPECT_EQ(pool.claim(), buffer);
}

TEST_F(receive_pool_test, a_lease_beyond_the_pool_frees_its_memory_and_no_buffer) {
    receive_pool& pool = make(2);
    {
        pool.lend();
        const received bytes{pool, receive_pool::on_heap, receive_pool::allocate_overflow(100), 1};
        EXPECT_EQ(pool.leases(), 1U);
    }

    EXPECT_EQ(pool.leases(), 0U);
    EXPECT_EQ(listener.returned, 0);
}

TEST_F(receive_pool_test, a_pool_that_is_abandoned_without_leases_is_unmapped) {
    const std::byte* const memory = make(2).memory(0);
    EXPECT_NE(resident_pages(memory), -1);

    abandon();

    EXPECT_EQ(resident_pages(memory), -1);
}

TEST_F(receive_pool_test, leases_outlive_the_loop_and_the_last_one_frees_the_pool) {
    receive_pool& pool = make(2);
    const std::byte* const memory = pool.memory(0);
    pool.memory(0)[0] = std::byte{42};
    received first = lease(0), second = lease(1);

    abandon();

    EXPECT_EQ(first.data()[0], std::byte{42});
    second.release();
    EXPECT_EQ(first.data()[0], std::byte{42});
    first.release();
    EXPECT_EQ(resident_pages(memory), -1);
    EXPECT_EQ(listener.returned, 0) << "the loop that listened is gone";
}

/// The parts of a lease on the pool, or on memory from the heap, of 100 bytes.
class split_lease_test : public receive_pool_test, public ::testing::WithParamInterface<bool> {
protected:
    received whole() {
        receive_pool& pool = make(2);
        const bool heap = GetParam();
        const std::uint32_t buffer = heap ? receive_pool::on_heap : pool.claim();
        std::byte* const memory = heap ? receive_pool::allocate_overflow(100) : pool.memory(buffer);
        for (std::size_t at = 0; at < 100; ++at)
            memory[at] = static_cast<std::byte>(at);
        pool.lend();
        pool_made_ = &pool;
        return {pool, buffer, memory, 100};
    }
    static void expect_bytes(const received& part, std::size_t begin, std::size_t end) {
        ASSERT_EQ(part.size(), end - begin);
        for (std::size_t at = begin; at < end; ++at)
            EXPECT_EQ(part.data()[at - begin], static_cast<std::byte>(at));
    }
    /// Buffers that came back to the pool.
    int expected_returns() const { return GetParam() ? 0 : 1; }
    std::size_t leased() const { return pool_made_->leases(); }

private:
    receive_pool* pool_made_ = nullptr;
};

TEST_P(split_lease_test, the_parts_share_a_buffer_that_counts_once) {
    received rest = whole();
    const std::byte* const begin = rest.data();
    received front = rest.split(30);
    expect_bytes(front, 0, 30);
    expect_bytes(rest, 30, 100);
    EXPECT_EQ(front.data(), begin);
    EXPECT_EQ(rest.data(), begin + 30);
    EXPECT_EQ(leased(), 1U);

    front.release();
    EXPECT_EQ(leased(), 1U);
    EXPECT_EQ(listener.returned, 0);
    expect_bytes(rest, 30, 100);
    rest.release();
    EXPECT_EQ(leased(), 0U);
    EXPECT_EQ(listener.returned, expected_returns());
}

TEST_P(split_lease_test, parts_are_split_moved_and_destroyed_in_any_order) {
    std::vector<int> order{0, 1, 2, 3};
    do {
        listener.returned = 0;
        std::array<received, 4> parts;
        parts[3] = whole();
        parts[0] = parts[3].split(40); // 0..40, 40..100
        parts[1] = parts[0].split(10); // 0..10, 10..40
        parts[2] = parts[3].split(50); // 40..90, 90..100
        received moved = std::move(parts[2]);
        parts[2] = std::move(moved);
        expect_bytes(parts[0], 10, 40);
        expect_bytes(parts[1], 0, 10);
        expect_bytes(parts[2], 40, 90);
        expect_bytes(parts[3], 90, 100);
        for (const int each : order) {
            EXPECT_EQ(leased(), 1U);
            EXPECT_EQ(listener.returned, 0);
            parts[static_cast<std::size_t>(each)] = received{};
        }
        EXPECT_EQ(leased(), 0U);
        EXPECT_EQ(listener.returned, expected_returns());
        abandon();
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(split_lease_test, a_part_without_bytes_holds_nothing) {
    received lease = whole();
    EXPECT_TRUE(lease.split(0).empty());
    received all = lease.split(100);
    EXPECT_TRUE(lease.empty());
    EXPECT_EQ(leased(), 1U);
    lease.release();
    expect_bytes(all, 0, 100);
    received none;
    EXPECT_TRUE(none.split(0).empty());
    all.release();
    EXPECT_EQ(leased(), 0U);
    EXPECT_EQ(listener.returned, expected_returns());
}

TEST_P(split_lease_test, parts_outlive_the_loop) {
    received rest = whole();
    received front = rest.split(99);
    abandon();
    expect_bytes(front, 0, 99);
    rest.release();
    expect_bytes(front, 0, 99);
    received half = front.split(50);
    front.release();
    expect_bytes(half, 0, 50);
}

TEST_P(split_lease_test, a_split_behind_the_end_stops_the_program) {
    received lease = whole();
    EXPECT_DEATH(static_cast<void>(lease.split(101)), "a lease was split behind its end");
}

constexpr auto place_of_memory = [](const auto& of) {
    return of.param ? "of_the_heap" : "of_the_pool";
};
INSTANTIATE_TEST_SUITE_P(memory, split_lease_test, ::testing::Bool(), place_of_memory);

TEST_F(receive_pool_test, a_moved_lease_is_released_once) {
    make(2);
    received from = lease(0, 5);

    received to = std::move(from);
    EXPECT_TRUE(from.empty());
    from.release();
    EXPECT_EQ(listener.returned, 0);
    EXPECT_EQ(to.size(), 5U);

    to.release();
    to.release();
    EXPECT_EQ(listener.returned, 1);
    EXPECT_EQ(to.data(), nullptr);
}

TEST_F(receive_pool_test, assigning_a_lease_releases_the_previous_one) {
    make(2);
    received held = lease(0, 3), other = lease(1, 4);

    held = std::move(other);

    EXPECT_EQ(listener.returned, 1);
    EXPECT_EQ(held.size(), 4U);
    EXPECT_EQ(static_cast<const_buffer>(held).size(), 4U);
    EXPECT_EQ(held.bytes().data(), held.data());
}

TEST_F(receive_pool_test, a_default_constructed_lease_is_empty) {
    const received nothing;

    EXPECT_TRUE(nothing.empty());
    EXPECT_EQ(nothing.data(), nullptr);
}

#ifndef NDEBUG
TEST_F(receive_pool_test, a_lease_that_is_released_twice_stops_the_program) {
    receive_pool& pool = make(2);

    EXPECT_DEATH(pool.release(pool.claim(), nullptr), "a lease was released twice");
}
#endif

} // namespace
} // namespace simplenet::v0::detail
