#include <simplenet/stream/read_until.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/pieces.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/deadline.hpp>

#include <limits>
#include <string>
#include <string_view>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::noise;
using testing::pieces;
using testing::turns;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

class read_until_test : public testing::backend_test {};

TEST_P(read_until_test, returns_the_length_through_the_delimiter_and_keeps_the_rest) {
    run([&]() -> task<> {
        pieces stream{{"key: ", "value\r", "\nnext: more\r\n"}};
        std::string text;
        EXPECT_EQ((co_await async_read_until(stream, text, "\r\n", 100)).value_or(0), 12U);
        EXPECT_TRUE(text.starts_with("key: value\r\nnext"));
        text.erase(0, 12);
        EXPECT_EQ((co_await async_read_until(stream, text, "\r\n", 100)).value_or(0), 12U);
        EXPECT_EQ(text, "next: more\r\n");
    });
}

TEST_P(read_until_test, reads_nothing_if_the_delimiter_is_already_there) {
    run([&]() -> task<> {
        pieces stream{{"unread"}};
        std::string text = "a;b";
        EXPECT_EQ((co_await async_read_until(stream, text, ";", 2)).value_or(0), 2U);
        EXPECT_EQ(text, "a;b");
    });
}

TEST_P(read_until_test, any_division_into_reads_gives_the_same_result) {
    const std::string text = "--a---b--c";
    run([&]() -> task<> {
        for (std::size_t first = 0; first <= text.size(); ++first) {
            for (std::size_t size = 1; size <= text.size(); ++size) {
                std::string into = text.substr(0, first);
                pieces stream{std::string_view{text}.substr(first), [=] { return size; }};
                EXPECT_EQ((co_await async_read_until(stream, into, "--c", 10)).value_or(0), 10U);
                EXPECT_EQ(into, text);
            }
        }
    });
}

TEST_P(read_until_test, the_string_never_grows_beyond_the_limit) {
    run([&]() -> task<> {
        for (std::size_t piece = 1; piece < 12; ++piece) {
            pieces stream{"0123456789;", [=] { return piece; }};
            std::string text;
            EXPECT_EQ(error_of(co_await async_read_until(stream, text, ";", 10)),
                      errc::limit_exceeded);
            EXPECT_EQ(text, "0123456789");
            EXPECT_EQ((co_await async_read_until(stream, text, ";", 11)).value_or(0), 11U);
        }
        pieces stream{{"x"}};
        std::string text = "0123;";
        EXPECT_EQ(error_of(co_await async_read_until(stream, text, ";", 4)), errc::limit_exceeded);
        EXPECT_EQ(error_of(co_await async_read_until(stream, text, ";", 0)), errc::limit_exceeded);
        EXPECT_EQ(error_of(co_await async_read_until(stream, text, "|", 3)), errc::limit_exceeded);
        EXPECT_EQ(text, "0123;");
    });
}

TEST_P(read_until_test, a_delimiter_that_never_comes_leaves_the_rest_at_the_end_of_the_stream) {
    run([&]() -> task<> {
        pieces stream{{"no end", " in sight"}};
        std::string text = "> ";
        EXPECT_EQ(error_of(co_await async_read_until(stream, text, "\n", unlimited)),
                  errc::end_of_stream);
        EXPECT_EQ(text, "> no end in sight");
    });
}

TEST_P(read_until_test, stopped_and_timed_out_calls_lose_nothing_and_can_be_repeated) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::string text = "a";
        theirs.send("b");
        for (int round = 0; round < 3; ++round) {
            EXPECT_EQ(error_of(co_await with_timeout(async_read_until(ours, text, "\n", 50), 2ms)),
                      errc::deadline_exceeded);
        }
        EXPECT_EQ(text, "ab");
        auto reading = spawn([&]() -> task<result<std::size_t>> {
            co_return co_await async_read_until(ours, text, "\n", 50);
        });
        co_await turns(2);
        theirs.send("c");
        co_await turns(10);
        reading.request_stop();
        EXPECT_EQ(error_of(co_await reading), std::errc::operation_canceled);
        EXPECT_EQ(text, "abc");
        theirs.send("\n");
        EXPECT_EQ((co_await async_read_until(ours, text, "\n", 50)).value_or(0), 4U);
    });
}

TEST_P(read_until_test, an_exception_of_the_stream_keeps_the_bytes_read) {
    run([&]() -> task<> {
        pieces stream{{"ab", "c;"}};
        stream.throw_at_read(1);
        std::string text;
        bool thrown = false;
        try {
            static_cast<void>(co_await async_read_until(stream, text, ";", 50));
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        EXPECT_TRUE(thrown);
        EXPECT_EQ(text, "ab");
    });
}

TEST_P(read_until_test, a_frame_destroyed_with_its_loop_keeps_the_bytes_read) {
    auto [ours, theirs] = duplex();
    std::string text = "abc";
    loop().spawn([](auto& from, std::string& into) -> task<> {
        for (;;)
            static_cast<void>(co_await async_read_until(from, into, ";", 50));
    }(ours, text));
    loop().poll();
    loop().poll();
    destroy_loop();
    EXPECT_EQ(text, "abc");
}

TEST_P(read_until_test, large_texts_pass_through) {
    run([&]() -> task<> {
        testing::dice dice{3};
        std::string sent = noise(1 << 20);
        std::erase(sent, '\n');
        pieces stream{sent + "\n", [&] { return 1 + dice.up_to(5000); }};
        std::string text;
        EXPECT_EQ((co_await async_read_until(stream, text, "\n", unlimited)).value_or(0),
                  sent.size() + 1);
        text.pop_back();
        EXPECT_TRUE(text == sent);
    });
}

TEST_P(read_until_test, an_empty_delimiter_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    pieces stream{{"x"}};
    std::string text;
    EXPECT_DEATH(static_cast<void>(async_read_until(stream, text, "", 5)), "empty delimiter");
}

INSTANTIATE_TEST_SUITE_P(backends, read_until_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
