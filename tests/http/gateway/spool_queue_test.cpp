// Bytes on the disk between a backend and a client.

#include "http/gateway/spool_queue.hpp"

#include "support/backend_test.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

using namespace http::detail;

class spool_queue_test : public backend_test {
protected:
    static task<result<>> put(spool_queue& to, std::string_view text) {
        const mutable_buffer into = to.room();
        EXPECT_GE(into.size(), text.size());
        std::memcpy(into.data(), text.data(), text.size());
        return to.put(text.size());
    }
    static task<std::string> take(spool_queue& from) {
        std::string all;
        while (!from.empty()) {
            const result<const_buffer> bytes = co_await from.front();
            EXPECT_TRUE(bytes);
            if (!bytes) break;
            all.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
            from.drop(bytes->size());
        }
        co_return all;
    }
};

TEST_P(spool_queue_test, what_was_put_is_taken_in_order_from_blocks_that_are_used_again) {
    run([&]() -> task<> {
        spool_queue queue{"/tmp", 2 * spool_block, {}};
        const std::string large(spool_block - 100, 'x');
        for (int round = 0; round < 10; ++round) {
            const std::string small = std::to_string(round);
            const result<> first = co_await put(queue, small);
            const std::size_t room = queue.room().size();
            const result<> second = co_await put(
                queue, std::string_view{large}.substr(0, std::min(room, large.size())));
            EXPECT_TRUE(first && second);
            const result<const_buffer> front = co_await queue.front();
            EXPECT_TRUE(front);
            queue.drop(1);
            const result<> third = co_await put(queue, "z");
            EXPECT_TRUE(third);
            const std::string got = co_await take(queue);
            EXPECT_TRUE(got.ends_with('z'));
            EXPECT_EQ(got.size(), std::min(room, large.size()) + 1);
        }
    });
}

TEST_P(spool_queue_test, a_full_file_has_no_room_until_some_is_taken) {
    run([&]() -> task<> {
        spool_queue queue{"/tmp", spool_block, {}};
        const std::string all(spool_block, 'x');
        const result<> stored = co_await put(queue, all);
        EXPECT_TRUE(stored);
        EXPECT_TRUE(queue.room().empty());

        const result<const_buffer> front = co_await queue.front();
        EXPECT_TRUE(front);
        queue.drop(spool_block - 1);
        EXPECT_TRUE(queue.room().empty());
        queue.drop(1);
        EXPECT_EQ(queue.room().size(), spool_block);
    });
}

TEST_P(spool_queue_test, the_rest_of_a_block_is_room_unless_it_is_small) {
    run([&]() -> task<> {
        spool_queue queue{"/tmp", 2 * spool_block, {}};
        const result<> small = co_await put(queue, "small");
        EXPECT_TRUE(small);
        EXPECT_EQ(queue.room().size(), spool_block - 5);
        const std::string rest(spool_block - 10, 'x');
        const result<> large = co_await put(queue, rest);
        EXPECT_TRUE(large);
        EXPECT_EQ(queue.room().size(), spool_block);

        spool_queue last{"/tmp", spool_block, {}};
        const result<> first = co_await put(last, rest);
        EXPECT_TRUE(first);
        EXPECT_EQ(last.room().size(), 10U); // there is no other block
    });
}

TEST_P(spool_queue_test, the_block_of_the_next_bytes_stays_although_all_of_it_is_taken) {
    run([&]() -> task<> {
        spool_queue queue{"/tmp", 2 * spool_block, {}};
        const result<> first = co_await put(queue, "first");
        EXPECT_TRUE(first);
        std::memcpy(queue.room().data(), "second", 6);
        const std::string before = co_await take(queue);
        EXPECT_EQ(before, "first");

        const result<> second = co_await queue.put(6);
        EXPECT_TRUE(second);
        const std::string after = co_await take(queue);
        EXPECT_EQ(after, "second");
        EXPECT_EQ(queue.room().size(), spool_block);
    });
}

TEST_P(spool_queue_test, a_failure_leaves_the_bytes_in_memory) {
    run([&]() -> task<> {
        spool_queue queue{"/nowhere", spool_block, {}};
        const result<> stored = co_await put(queue, "text");
        EXPECT_EQ(stored.error(), std::errc::no_such_file_or_directory);

        const scratch memory = queue.release();
        EXPECT_EQ(std::memcmp(memory.data(), "text", 4), 0);
        EXPECT_TRUE(queue.empty());
        EXPECT_TRUE(queue.room().empty());
    });
}

TEST_P(spool_queue_test, a_file_size_limit_is_an_error_and_no_signal) {
    run([&]() -> task<> {
        ::rlimit before{};
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
        const ::rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
        spool_queue queue{"/tmp", spool_block, {}};
        const std::string text(200, 'x');
        const result<> stored = co_await put(queue, text);
        ::setrlimit(RLIMIT_FSIZE, &before);

        EXPECT_EQ(stored.error(), std::errc::file_too_large);
    });
}

TEST_P(spool_queue_test, the_room_is_taken_as_the_file_grows_and_given_back) {
    run([&]() -> task<> {
        const auto budget = std::make_shared<disk_room>(4 * spool_block);
        {
            spool_queue queue{"/tmp", 8 * spool_block, {.disk = budget}};
            EXPECT_TRUE(budget->take(2 * spool_block, 0)); // by another answer
            const std::string all(spool_block, 'x');
            const result<> stored = co_await put(queue, all);
            EXPECT_TRUE(stored);
            EXPECT_TRUE(queue.room().empty());
            budget->give_back(2 * spool_block);
            EXPECT_EQ(queue.room().size(), spool_block);
        }
        EXPECT_EQ(budget->left(), 4 * spool_block);
    });
}

TEST_P(spool_queue_test, a_queue_that_has_become_empty_can_give_its_room_back) {
    run([&]() -> task<> {
        constexpr std::uint64_t all = 64 * spool_block;
        const auto budget = std::make_shared<disk_room>(all);
        spool_queue queue{"/tmp", all, {.disk = budget}};
        const std::string block(spool_block, 'x');
        for (int each = 0; each < 20; ++each) {
            const result<> stored = co_await put(queue, block);
            EXPECT_TRUE(stored);
        }
        EXPECT_FALSE(queue.is_worth_clearing());
        EXPECT_EQ(budget->left(), all - 20 * spool_block);
        const std::string taken = co_await take(queue);
        EXPECT_EQ(taken.size(), 20 * spool_block);
        EXPECT_TRUE(queue.is_worth_clearing());

        co_await queue.clear();
        EXPECT_FALSE(queue.is_worth_clearing());
        EXPECT_EQ(budget->left(), all);

        const result<> stored = co_await put(queue, "more");
        EXPECT_TRUE(stored);
        const std::string more = co_await take(queue);
        EXPECT_EQ(more, "more");
    });
}

TEST_P(spool_queue_test, less_is_loaded_at_once_while_others_have_the_memory) {
    run([&]() -> task<> {
        const auto memory = std::make_shared<shared_room>(2 * spool_block);
        spool_queue queue{"/tmp", 4 * spool_block, {.memory = memory}};
        const std::string block(spool_block, 'x');
        for (int each = 0; each < 2; ++each) {
            const result<> stored = co_await put(queue, block);
            EXPECT_TRUE(stored);
        }
        EXPECT_TRUE(memory->take(spool_block, 0)); // by another answer

        const result<const_buffer> first = co_await queue.front();
        EXPECT_EQ(first->size(), spool_block / 4);
        queue.drop(first->size());
        memory->give_back(spool_block);
        const result<const_buffer> second = co_await queue.front();
        EXPECT_EQ(second->size(), 3 * spool_block / 4);
        queue.drop(second->size());
        const result<const_buffer> third = co_await queue.front();
        EXPECT_EQ(third->size(), spool_block);
        EXPECT_EQ(memory->left(), spool_block);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, spool_queue_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
