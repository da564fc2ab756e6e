#include <simplenet/stream/buffered_reader.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/pieces.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::noise;
using testing::pieces;
using testing::turns;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

static_assert(async_reader<buffered_reader<duplex_stream>>);
static_assert(async_reader<buffered_reader<tcp_stream&>>);
static_assert(async_reader<buffered_reader<buffered_reader<pieces>>>);

// A limit around read_line() needs no scope of its own if the stream's reads need none.
using line_of_socket = decltype(std::declval<buffered_reader<tcp_stream>&>().read_line(1));
using line_of_pieces = decltype(std::declval<buffered_reader<pieces>&>().read_line(1));
static_assert(detail::leaf<line_of_socket> && !detail::leaf<line_of_pieces>);

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Everything that a reader gets from a stream, line by line.
struct lines {
    std::vector<std::string> whole;
    std::error_code end;
    std::string tail;

    bool operator==(const lines&) const = default;
};

template <class Reader>
task<lines> read_lines(Reader& reader, std::size_t limit) {
    lines got;
    for (;;) {
        const auto line = co_await reader.read_line(limit);
        if (!line) {
            got.end = line.error();
            break;
        }
        got.whole.emplace_back(*line);
    }
    got.tail = text_of(reader.peek());
    co_return got;
}

/// The expected result of read_lines().
lines expected_lines(std::string_view text, std::size_t limit) {
    lines want;
    for (;;) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        // A `\r` at the end of an unfinished line may belong to the end of the line.
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.size() > limit) {
            want.end = errc::limit_exceeded;
            break;
        }
        if (end == std::string_view::npos) {
            want.end = errc::end_of_stream;
            break;
        }
        want.whole.emplace_back(line);
        text.remove_prefix(end + 1);
    }
    want.tail = text;
    return want;
}

/// `text` divided at `cuts`, which are in order.
std::vector<std::string> cut(std::string_view text, std::initializer_list<std::size_t> cuts) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    for (const std::size_t at : cuts) {
        parts.emplace_back(text.substr(from, at - from));
        from = at;
    }
    parts.emplace_back(text.substr(from));
    std::erase_if(parts, [](const std::string& part) { return part.empty(); });
    return parts;
}

class buffered_reader_test : public testing::backend_test {};

// --- lines ---------------------------------------------------------------------------------------

TEST_P(buffered_reader_test, lines_come_without_their_ends) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"one\ntwo\r\n\n\r\nth\rree\r\r\n"}}};
        const lines got = co_await read_lines(reader, 100);
        EXPECT_THAT(got.whole, ElementsAre("one", "two", "", "", "th\rree\r"));
        EXPECT_EQ(got.end, errc::end_of_stream);
        EXPECT_EQ(got.tail, "");
    });
}

TEST_P(buffered_reader_test, an_unfinished_line_stays_readable_at_the_end_of_the_stream) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"whole\nunfin", "ished"}}};
        const lines got = co_await read_lines(reader, 100);
        EXPECT_THAT(got.whole, ElementsAre("whole"));
        EXPECT_EQ(got.end, errc::end_of_stream);
        EXPECT_EQ(got.tail, "unfinished");

        EXPECT_EQ(error_of(co_await reader.read_line(100)), errc::end_of_stream);
        EXPECT_EQ(error_of(co_await reader.read_exact(11)), errc::end_of_stream);
        EXPECT_EQ(text_of((co_await reader.read_exact(10)).value()), "unfinished");
        EXPECT_TRUE(reader.peek().empty());
    });
}

TEST_P(buffered_reader_test, a_limit_counts_the_line_without_its_end) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"12345\n12345\r\n123456\n"}}};
        EXPECT_EQ((co_await reader.read_line(5)).value_or("?"), "12345");
        EXPECT_EQ((co_await reader.read_line(5)).value_or("?"), "12345");
        EXPECT_EQ(error_of(co_await reader.read_line(5)), errc::limit_exceeded);
        EXPECT_EQ(error_of(co_await reader.read_line(5)), errc::limit_exceeded);
        EXPECT_EQ((co_await reader.read_line(6)).value_or("?"), "123456");
    });
}

TEST_P(buffered_reader_test, a_limit_is_noticed_before_the_end_of_the_line_arrives) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader reader{ours};
        EXPECT_TRUE(co_await theirs.write_some("123456"));
        EXPECT_EQ(error_of(co_await reader.read_line(5)), errc::limit_exceeded);
        EXPECT_EQ(text_of(reader.peek()), "123456");

        reader.consume(6);
        EXPECT_TRUE(co_await theirs.write_some("12345\r"));
        EXPECT_EQ(error_of(co_await with_timeout(reader.read_line(5), 1ms)),
                  errc::deadline_exceeded); // it may end a line that fits
        EXPECT_TRUE(co_await theirs.write_some("x"));
        EXPECT_EQ(error_of(co_await reader.read_line(5)), errc::limit_exceeded);
    });
}

TEST_P(buffered_reader_test, limits_of_zero_and_of_the_whole_input) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"\n\r\nlong\n"}}};
        EXPECT_EQ((co_await reader.read_line(0)).value_or("?"), "");
        EXPECT_EQ((co_await reader.read_line(0)).value_or("?"), "");
        EXPECT_EQ(error_of(co_await reader.read_line(0)), errc::limit_exceeded);
        EXPECT_EQ((co_await reader.read_line(no_limit)).value_or("?"), "long");
        EXPECT_EQ(error_of(co_await reader.read_until("x", 0)), errc::limit_exceeded);
        EXPECT_EQ(error_of(co_await reader.read_until("x", no_limit)), errc::end_of_stream);
    });
}

// The property: the division of a text into reads does not matter.
TEST_P(buffered_reader_test, any_two_or_three_reads_give_the_same_lines) {
    constexpr auto text = "GET / HTTP/1.1\r\nA: b\n\r\n\n\r\rend\r\ntail\r"sv;
    run([&]() -> task<> {
        for (const std::size_t limit : {0UL, 4UL, 13UL, 14UL, 100UL}) {
            const lines want = expected_lines(text, limit);
            for (std::size_t first = 0; first <= text.size(); ++first) {
                for (std::size_t second = first; second <= text.size(); ++second) {
                    buffered_reader reader{pieces{cut(text, {first, second})}};
                    const lines got = co_await read_lines(reader, limit);
                    // The bytes read when a limit was exceeded do depend on the division.
                    EXPECT_EQ(got.whole, want.whole) << first << ' ' << second;
                    EXPECT_EQ(got.end, want.end) << first << ' ' << second;
                    EXPECT_TRUE(want.tail.starts_with(got.tail)) << first << ' ' << second;
                    if (want.end == errc::end_of_stream) {
                        EXPECT_EQ(got.tail, want.tail);
                    }
                }
            }
        }
    });
}

TEST_P(buffered_reader_test, random_texts_in_random_reads_give_the_lines_of_a_simple_loop) {
    run([&]() -> task<> {
        for (std::uint32_t seed = 1; seed <= 300; ++seed) {
            testing::dice dice{seed};
            std::string text;
            for (std::size_t size = dice.up_to(seed % 10 == 0 ? 30'000 : 300); size > 0; --size)
                text += "\n\r\nab"[dice.up_to(dice.one_in(30) ? 2 : 4)];
            const std::size_t limit = dice.one_in(3) ? dice.up_to(40) : no_limit;
            const lines want = expected_lines(text, limit);

            buffered_reader reader{pieces{text, [&] { return 1 + dice.up_to(700); }}};
            const lines got = co_await read_lines(reader, limit);
            EXPECT_EQ(got.whole, want.whole);
            EXPECT_EQ(got.end, want.end);
            EXPECT_TRUE(want.tail.starts_with(got.tail));
        }
    });
}

TEST_P(buffered_reader_test, long_lines_arrive_byte_by_byte_in_linear_time) {
    run([&]() -> task<> {
        const std::string line(200'000, 'x');
        buffered_reader reader{pieces{line + "\nnext\n", [] { return 1U; }}};
        EXPECT_TRUE((co_await reader.read_line(no_limit)).value_or("") == line);
        EXPECT_EQ((co_await reader.read_line(4)).value_or("?"), "next");
    });
}

TEST_P(buffered_reader_test, a_view_lasts_until_the_next_call) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader reader{ours};
        EXPECT_TRUE(co_await theirs.write_some("first\nsecond"));
        const std::string_view first = (co_await reader.read_line(100)).value_or("?");
        EXPECT_EQ(text_of(reader.peek()), "second");
        buffered_reader moved{std::move(reader)};
        EXPECT_EQ(first, "first");
    });
}

TEST_P(buffered_reader_test, a_reader_owns_or_borrows_its_stream) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        {
            buffered_reader borrows{ours};
            static_assert(std::same_as<decltype(borrows), buffered_reader<duplex_stream&>>);
            EXPECT_EQ(&borrows.stream(), &ours);
            EXPECT_TRUE(co_await borrows.stream().write_some("x"));
        }
        {
            buffered_reader owns{std::move(ours)};
            static_assert(std::same_as<decltype(owns), buffered_reader<duplex_stream>>);
            EXPECT_TRUE(co_await theirs.write_some("line\n"));
            buffered_reader moved = std::move(owns);
            EXPECT_EQ((co_await moved.read_line(10)).value_or("?"), "line");
        }
        EXPECT_EQ(error_of(co_await theirs.write_some("x")), std::errc::broken_pipe);
    });
}

// --- other kinds of reads ------------------------------------------------------------------------

TEST_P(buffered_reader_test, calls_of_every_kind_can_be_mixed) {
    run([&]() -> task<> {
        for (std::size_t piece = 1; piece < 40; ++piece) {
            buffered_reader reader{
                pieces{"POST\r\n\r\n5\nhello--boundary--abcdefghij", [=] { return piece; }}};
            EXPECT_EQ((co_await reader.read_until("\r\n\r\n", 100)).value_or("?"), "POST\r\n\r\n");
            EXPECT_EQ((co_await reader.read_line(100)).value_or("?"), "5");
            EXPECT_EQ(text_of((co_await reader.read_exact(5)).value()), "hello");
            EXPECT_EQ(text_of((co_await reader.read_exact(0)).value()), "");
            EXPECT_EQ((co_await reader.read_until("--boundary--", 12)).value_or("?"),
                      "--boundary--");
            while (reader.peek().size() < 3)
                EXPECT_TRUE(co_await reader.fill());
            EXPECT_EQ(text_of(reader.peek().first(3)), "abc");
            reader.consume(3);
            std::string rest(7, '\0');
            EXPECT_TRUE(co_await async_read_exact(reader, rest));
            EXPECT_EQ(rest, "defghij");
            EXPECT_EQ(error_of(co_await reader.fill()), errc::end_of_stream);
        }
    });
}

TEST_P(buffered_reader_test, a_delimiter_beyond_the_limit_is_not_found) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"abcdef--rest"}}};
        EXPECT_EQ(error_of(co_await reader.read_until("--", 7)), errc::limit_exceeded);
        EXPECT_EQ(text_of(reader.peek()), "abcdef--rest");
        EXPECT_EQ((co_await reader.read_until("--", 8)).value_or("?"), "abcdef--");
        EXPECT_EQ(text_of(reader.peek()), "rest");
    });
}

TEST_P(buffered_reader_test, delimiters_that_repeat_themselves_are_found_across_reads) {
    constexpr auto text = "aabaabaaabaaab!"sv;
    run([&]() -> task<> {
        for (std::size_t first = 0; first <= text.size(); ++first) {
            for (std::size_t second = first; second <= text.size(); ++second) {
                buffered_reader reader{pieces{cut(text, {first, second})}};
                EXPECT_EQ((co_await reader.read_until("aaab", 100)).value_or("?"), "aabaabaaab");
                EXPECT_EQ((co_await reader.read_until("aaab", 4)).value_or("?"), "aaab");
                EXPECT_EQ((co_await reader.read_until("!", 1)).value_or("?"), "!");
            }
        }
    });
}

TEST_P(buffered_reader_test, read_some_takes_from_the_buffer_and_then_from_the_stream) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"line\nrest", "more"}}};
        EXPECT_TRUE(co_await reader.read_line(10));
        std::array<char, 3> small{};
        EXPECT_EQ((co_await reader.read_some(small)).value_or(0), 3U);
        std::array<char, 10> large{};
        EXPECT_EQ((co_await reader.read_some(large)).value_or(0), 1U);
        EXPECT_EQ(large[0], 't');
        EXPECT_EQ((co_await reader.read_some(large)).value_or(0), 4U);
        EXPECT_EQ(std::string_view(large.data(), 4), "more");
        EXPECT_EQ(error_of(co_await reader.read_some(large)), errc::end_of_stream);
    });
}

TEST_P(buffered_reader_test, a_count_claimed_by_a_peer_takes_no_memory_before_its_bytes_arrive) {
    run([&]() -> task<> {
        buffered_reader reader{pieces{{"little"}}};
        EXPECT_EQ(error_of(co_await reader.read_exact(no_limit)), errc::end_of_stream);
        EXPECT_EQ(text_of(reader.peek()), "little");
    });
}

TEST_P(buffered_reader_test, large_counts_arrive_completely) {
    run([&]() -> task<> {
        testing::dice dice{7};
        const std::string text = noise(1 << 20);
        buffered_reader reader{pieces{text, [&] { return 1 + dice.up_to(60'000); }}};
        EXPECT_TRUE(co_await reader.read_exact(10));
        EXPECT_TRUE(text_of((co_await reader.read_exact(1'000'000)).value()) ==
                    std::string_view{text}.substr(10, 1'000'000));
    });
}

// --- errors, stops and deadlines -----------------------------------------------------------------

TEST_P(buffered_reader_test, errors_of_the_stream_follow_the_lines_received_before) {
    run([&]() -> task<> {
        buffered_reader reader{
            pieces{{"one\ntwo\nthr"}, std::make_error_code(std::errc::connection_reset)}};
        const lines got = co_await read_lines(reader, 100);
        EXPECT_THAT(got.whole, ElementsAre("one", "two"));
        EXPECT_EQ(got.end, std::errc::connection_reset);
        EXPECT_EQ(got.tail, "thr");
    });
}

TEST_P(buffered_reader_test, a_call_that_ran_out_of_time_loses_nothing_and_can_be_repeated) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader reader{ours};
        EXPECT_TRUE(co_await theirs.write_some("half a "));
        EXPECT_EQ(error_of(co_await with_timeout(reader.read_line(100), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(reader.read_until("--", 100), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(reader.read_exact(100), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(reader.fill(), 1ms)), errc::deadline_exceeded);
        EXPECT_EQ(text_of(reader.peek()), "half a ");
        EXPECT_TRUE(co_await theirs.write_some("line\n"));
        EXPECT_EQ((co_await with_timeout(reader.read_line(100), 1ms)).value_or("?"), "half a line");
        std::array<char, 4> buffer;
        EXPECT_EQ(error_of(co_await with_timeout(reader.read_some(buffer), 1ms)),
                  errc::deadline_exceeded);
    });
}

// The limit passes while a part of the line is arriving: there must be no second read without a
// limit.
TEST_P(buffered_reader_test, a_limit_that_passes_while_bytes_arrive_still_ends_the_call) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        buffered_reader reader{ours};
        auto reading = spawn([&]() -> task<> {
            const auto start = std::chrono::steady_clock::now();
            for (int round = 0; round < 20; ++round) {
                EXPECT_EQ(error_of(co_await with_timeout(reader.read_line(no_limit), 1ms)),
                          errc::deadline_exceeded);
            }
            EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
        });
        std::size_t sent = 0;
        while (!reading.done()) { // never a whole line, but always a bit more
            theirs.send("x");
            ++sent;
            co_await yield();
        }
        co_await reading;
        theirs.send("\n");
        EXPECT_EQ((co_await reader.read_line(no_limit)).value_or("").size(), sent);
    });
}

TEST_P(buffered_reader_test, a_slow_peer_cannot_stretch_a_limit) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader reader{ours};
        auto drip = spawn([&]() -> task<> {
            while (co_await theirs.write_some("x"))
                co_await async_sleep(1ms);
        });
        EXPECT_EQ(error_of(co_await with_timeout(reader.read_line(no_limit), 10ms)),
                  errc::deadline_exceeded);
        drip.request_stop();
        co_await drip;
    });
}

TEST_P(buffered_reader_test, a_stopped_call_is_refused_even_if_its_line_is_available) {
    run([&]() -> task<> {
        auto [ours, theirs] = duplex();
        buffered_reader reader{ours};
        EXPECT_TRUE(co_await theirs.write_some("one\ntwo\nthree"));
        auto reading = spawn([&]() -> task<> {
            EXPECT_EQ((co_await reader.read_line(100)).value_or("?"), "one");
            EXPECT_EQ(error_of(co_await with_timeout(async_sleep(1h), 1h)), canceled);
            std::array<char, 4> buffer;
            EXPECT_EQ(error_of(co_await reader.read_line(100)), canceled);
            EXPECT_EQ(error_of(co_await reader.read_some(buffer)), canceled);
            EXPECT_EQ(error_of(co_await reader.read_exact(0)), canceled);
            EXPECT_EQ(error_of(co_await with_timeout(reader.read_line(100), 1h)), canceled);
        });
        co_await turns(2);
        reading.request_stop();
        co_await reading;
        EXPECT_EQ((co_await reader.read_line(100)).value_or("?"), "two");
        EXPECT_EQ(text_of(reader.peek()), "three");
    });
}

TEST_P(buffered_reader_test, a_stop_at_any_turn_loses_nothing) {
    const std::string text = "first line\nsecond line\r\nthird";
    for (int when = 0; when < 40; ++when) {
        run([&]() -> task<> {
            auto [ours, theirs] = duplex(3);
            buffered_reader reader{ours};
            auto writing = spawn([&]() -> task<> {
                EXPECT_TRUE(co_await async_write_all(theirs, text));
                theirs.close();
            });
            std::vector<std::string> got;
            std::error_code end;
            const auto read = [&]() -> task<> {
                for (;;) {
                    const auto line = co_await reader.read_line(100);
                    if (!line) {
                        end = line.error();
                        co_return;
                    }
                    got.emplace_back(*line);
                }
            };
            auto reading = spawn(read());
            co_await turns(when);
            reading.request_stop();
            co_await reading;
            if (end == canceled) co_await read();
            co_await writing;
            EXPECT_EQ(end, errc::end_of_stream);
            EXPECT_THAT(got, ElementsAre("first line", "second line"));
            EXPECT_EQ(text_of(reader.peek()), "third");
        });
    }
}

TEST_P(buffered_reader_test, buffered_lines_let_others_run) {
    run([&]() -> task<> {
        std::string text;
        for (int line = 0; line < 1000; ++line)
            text += "x\n";
        auto [ours, theirs] = duplex();
        EXPECT_TRUE(co_await async_write_all(theirs, text));
        buffered_reader reader{ours};
        int others = 0;
        bool over = false;
        auto other = spawn([&]() -> task<> {
            while (!over) {
                ++others;
                co_await yield();
            }
        });
        for (int line = 0; line < 1000; ++line)
            EXPECT_TRUE(co_await reader.read_line(1));
        over = true;
        co_await other;
        EXPECT_GE(others, 10);
    });
}

TEST_P(buffered_reader_test, an_exception_of_the_stream_is_passed_on_and_the_reader_stays_usable) {
    run([&]() -> task<> {
        pieces stream{{"half ", "a line\n"}};
        stream.throw_at_read(1);
        buffered_reader reader{stream};
        EXPECT_TRUE(co_await reader.fill());
        bool thrown = false;
        try {
            static_cast<void>(co_await reader.read_line(100));
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        EXPECT_TRUE(thrown);
        EXPECT_EQ((co_await reader.read_line(100)).value_or("?"), "half a line");
    });
}

TEST_P(buffered_reader_test, the_loop_may_end_while_a_line_is_awaited) {
    auto [ours, theirs] = duplex();
    buffered_reader reader{ours};
    std::error_code end;
    loop().spawn([](auto& from, std::error_code& ended) -> task<> {
        ended = error_of(co_await with_timeout(from.read_line(100), 1h));
        for (;;) // until it is resumed no more
            static_cast<void>(co_await from.read_line(100));
    }(reader, end));
    loop().poll();
    loop().poll();
    destroy_loop();
    EXPECT_EQ(end, canceled);
    EXPECT_TRUE(reader.peek().empty());
}

TEST_P(buffered_reader_test, lines_arrive_through_sockets) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        buffered_reader reader{std::move(ours)};
        auto reading = spawn(read_lines(reader, 100));
        for (const std::string_view part : {"o", "ne\n", "two\nthree", "\r", "\nfour"}) {
            theirs.send(part);
            co_await turns(3);
        }
        theirs.shutdown_write();
        const lines got = co_await reading;
        EXPECT_THAT(got.whole, ElementsAre("one", "two", "three"));
        EXPECT_EQ(got.tail, "four");
        EXPECT_EQ(got.end, errc::end_of_stream);
    });
}

// --- misuse --------------------------------------------------------------------------------------

TEST_P(buffered_reader_test, misuse_stops_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = duplex();
    buffered_reader reader{ours};
    EXPECT_DEATH(static_cast<void>(reader.read_until("", 10)), "empty delimiter");
    EXPECT_DEATH(static_cast<void>(reader.read_some(mutable_buffer{})), "into an empty buffer");
    EXPECT_DEATH(reader.consume(1), "more than there is");
    const auto while_reading = [&](auto misuse) {
        run([&]() -> task<> {
            auto reading =
                spawn([&]() -> task<> { static_cast<void>(co_await reader.read_line(10)); });
            co_await turns(2);
            co_await misuse();
            reading.request_stop();
        });
    };
    EXPECT_DEATH(
        while_reading([&]() -> task<> { static_cast<void>(co_await reader.read_line(10)); }),
        "while a read is in flight");
    EXPECT_DEATH(while_reading([&]() -> task<> {
                     static_cast<void>(reader.peek());
                     co_return;
                 }),
                 "while a read is in flight");
    EXPECT_DEATH(while_reading([&]() -> task<> {
                     const buffered_reader moved{std::move(reader)};
                     co_return;
                 }),
                 "while a read is in flight");
}

INSTANTIATE_TEST_SUITE_P(backends, buffered_reader_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
