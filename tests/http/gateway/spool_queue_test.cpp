// Bytes on the disk between a backend and a client.

#include "http/gateway/spool_queue.hpp"

#include "support/backend_test.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

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

TEST_P(spool_queue_test, what_was_put_is_taken_in_order_round_the_ring) {
    run([&]() -> task<> {
        spool_queue queue{"/tmp", 2 * spool_block, nullptr};
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
        spool_queue queue{"/tmp", spool_block, nullptr};
        const std::string all(spool_block, 'x');
        const result<> stored = co_await put(queue, all);
        EXPECT_TRUE(stored);
        EXPECT_TRUE(queue.room().empty());

        const result<const_buffer> front = co_await queue.front();
        EXPECT_TRUE(front);
        queue.drop(spool_queue::least_room - 1);
        EXPECT_TRUE(queue.room().empty());
        queue.drop(1);
        EXPECT_EQ(queue.room().size(), spool_queue::least_room);
    });
}

TEST_P(spool_queue_test, a_failure_leaves_the_bytes_in_memory) {
    run([&]() -> task<> {
        spool_queue queue{"/nowhere", spool_block, nullptr};
        const result<> stored = co_await put(queue, "text");
        EXPECT_EQ(stored.error(), std::errc::no_such_file_or_directory);

        const scratch memory = queue.release();
        EXPECT_EQ(std::memcmp(memory.data(), "text", 4), 0);
        EXPECT_TRUE(queue.empty());
        EXPECT_TRUE(queue.room().empty());
    });
}

TEST_P(spool_queue_test, a_budget_is_taken_as_the_file_grows_and_given_back) {
    run([&]() -> task<> {
        disk_budget budget{3 * spool_block};
        {
            spool_queue queue{"/tmp", 8 * spool_block, &budget};
            EXPECT_TRUE(budget.take(2 * spool_block)); // by another answer
            const std::string all(spool_block, 'x');
            const result<> stored = co_await put(queue, all);
            EXPECT_TRUE(stored);
            EXPECT_TRUE(queue.room().empty());
            budget.give_back(2 * spool_block);
            EXPECT_EQ(queue.room().size(), spool_block);
        }
        EXPECT_TRUE(budget.take(3 * spool_block));
        EXPECT_FALSE(budget.take(1));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, spool_queue_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
