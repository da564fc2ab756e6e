#include "httpd/log/ring.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace httpd {
namespace {

bool put(ring& to, std::string_view text) {
    char* const at = to.reserve(text.size());
    if (at == nullptr) return false;
    std::memcpy(at, text.data(), text.size());
    to.publish(text.size());
    return true;
}

TEST(ring_test, gives_what_was_put_in) {
    const auto made = ring::create(4096);

    ASSERT_TRUE(put(*made, "one "));
    ASSERT_TRUE(put(*made, "two"));

    EXPECT_EQ(made->readable(), "one two");
    made->consume(4);
    EXPECT_EQ(made->readable(), "two");
}

TEST(ring_test, what_crosses_the_end_is_contiguous) {
    const auto made = ring::create(4096);
    ASSERT_TRUE(put(*made, std::string(4090, 'x')));
    made->consume(4090);

    ASSERT_TRUE(put(*made, "across the end"));

    EXPECT_EQ(made->readable(), "across the end");
}

TEST(ring_test, is_full_to_the_last_byte) {
    const auto made = ring::create(4096);

    ASSERT_TRUE(put(*made, std::string(4096, 'x')));

    EXPECT_FALSE(put(*made, "y"));
    made->consume(1);
    EXPECT_TRUE(put(*made, "y"));
    EXPECT_FALSE(put(*made, "z"));
}

TEST(ring_test, sizes_are_rounded_up) {
    EXPECT_EQ(ring::create(1)->capacity() % 4096, 0U);
    EXPECT_EQ(ring::create(100'000)->capacity(), 131'072U);
}

TEST(ring_test, two_threads_lose_nothing) {
    constexpr unsigned count = 200'000;
    const auto made = ring::create(4096);
    std::thread producer{[&] {
        for (unsigned number = 0; number < count; ++number) {
            const std::string text = std::to_string(number) + '\n';
            while (!put(*made, text))
                std::this_thread::yield();
        }
    }};

    std::string line;
    unsigned next = 0;
    while (next < count) {
        const auto found = made->readable();
        for (const char each : found) {
            if (each != '\n') {
                line += each;
                continue;
            }
            EXPECT_EQ(line, std::to_string(next++));
            line.clear();
        }
        made->consume(found.size());
    }
    producer.join();
}

} // namespace
} // namespace httpd
