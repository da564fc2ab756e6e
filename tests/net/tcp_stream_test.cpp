#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/tcp.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connected_pair;
using testing::noise;
using testing::turns;
using clock = std::chrono::steady_clock;

// The bases for addresses and options are empty.
static_assert(sizeof(tcp_stream) == sizeof(void*));

class tcp_stream_test : public testing::backend_test {};

// --- reading -------------------------------------------------------------------------------------

TEST_P(tcp_stream_test, read_some_returns_available_bytes) {
    auto [ours, theirs] = connect_raw();
    theirs.send("hello");
    testing::await(ours.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::array<char, 16> buffer{};
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 5U);
        EXPECT_EQ(std::string_view(buffer.data(), 5), "hello");
    });
}

TEST_P(tcp_stream_test, read_some_waits_for_the_first_byte) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        auto later = spawn([&]() -> task<> {
            co_await turns(5);
            theirs.send("x");
        });
        std::array<char, 16> buffer{};
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        EXPECT_EQ(buffer[0], 'x');
        co_await later;
    });
}

TEST_P(tcp_stream_test, read_some_takes_no_more_than_fits) {
    auto [ours, theirs] = connect_raw();
    theirs.send("abcdef");
    testing::await(ours.native_handle(), POLLIN);
    run([&]() -> task<> {
        std::array<char, 2> buffer{};
        std::string all;
        for (int part = 0; part < 3; ++part) {
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 2U);
            all.append(buffer.data(), 2);
        }
        EXPECT_EQ(all, "abcdef");
    });
}

TEST_P(tcp_stream_test, reading_into_an_empty_buffer_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto [ours, theirs] = connect_raw();
    EXPECT_DEATH(static_cast<void>(ours.read_some(mutable_buffer{})),
                 "read_some\\(\\) into an empty buffer");
}

TEST_P(tcp_stream_test, read_some_reports_end_of_stream_after_the_peer_shuts_down) {
    auto [ours, theirs] = connect_raw();
    theirs.shutdown_write();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer{};
        for (int times = 0; times < 3; ++times) {
            auto count = co_await ours.read_some(buffer);
            EXPECT_EQ(error_of(count), errc::end_of_stream);
        }
    });
}

TEST_P(tcp_stream_test, bytes_before_the_end_of_the_stream_come_first) {
    auto [ours, theirs] = connect_raw();
    theirs.send("last words");
    theirs.shutdown_write();
    run([&]() -> task<> {
        std::array<char, 4> buffer{};
        std::string all;
        while (auto count = co_await ours.read_some(buffer))
            all.append(buffer.data(), *count);
        EXPECT_EQ(all, "last words");
        EXPECT_EQ(error_of(co_await ours.read_some(buffer)), errc::end_of_stream);
    });
}

// A short read usually means that nothing is left, but not before urgent data.
TEST_P(tcp_stream_test, bytes_after_urgent_data_are_delivered) {
    for (int when = 0; when < 3; ++when) {
        auto [ours, theirs] = connect_raw();
        run([&]() -> task<> {
            std::string got;
            auto reading = spawn(testing::collect(ours, got));
            co_await turns(when);
            theirs.send("before");
            theirs.send("!", MSG_OOB);
            theirs.send("after");
            if (when == 2) co_await turns(3);
            while (got.find("after") == std::string::npos)
                co_await yield();
            reading.request_stop();
            co_await reading;
        });
    }
}

// --- read-ahead ----------------------------------------------------------------------------------

TEST_P(tcp_stream_test, an_unread_stream_buffers_a_bounded_amount_and_delivers_it_later) {
    constexpr std::size_t read_ahead = 32 * 1024;
    // The kernel fills up to 32 buffers before it handles the cancel.
    constexpr std::size_t on_the_way = 32 * 16 * 1024;
    constexpr testing::buffer_sizes sizes{.ours = 256 * 1024, .theirs = 256 * 1024};
    remake_loop({.read_ahead = read_ahead});
    auto [ours, theirs] = connect_raw(sizes);
    auto [unknown, filling] = connect_raw(sizes); // no loop reads from it
    run([&]() -> task<> {
        const std::string block = noise(1 << 20);
        const auto fill = [&](const testing::raw_peer& from) -> task<std::size_t> {
            std::size_t sent = 0;
            for (int idle = 0; idle < 50 && sent < 8U << 20; ++idle) {
                const std::size_t at = sent % block.size();
                const ssize_t count =
                    ::send(from.fd(), block.data() + at, block.size() - at, MSG_DONTWAIT);
                if (count > 0) {
                    sent += static_cast<std::size_t>(count);
                    idle = 0;
                }
                co_await async_sleep(count > 0 ? 0ms : 1ms); // TCP opens its window slowly
            }
            co_return sent;
        };
        const std::size_t kernel_takes = co_await fill(filling);
        // From here on io_uring receives on its own.
        std::array<std::byte, 8> small;
        EXPECT_FALSE(co_await with_timeout(ours.read_some(small), 1ms));
        const std::size_t sent = co_await fill(theirs);
        EXPECT_LE(sent, kernel_takes + read_ahead + on_the_way + 64 * 1024);
        theirs.shutdown_write();

        std::size_t got = 0;
        bool same = true;
        while (auto lease = co_await ours.receive()) {
            for (const std::byte each : lease->bytes()) {
                same = same && each == static_cast<std::byte>(block[got % block.size()]);
                ++got;
            }
        }
        EXPECT_EQ(got, sent);
        EXPECT_TRUE(same);
    });
}

TEST_P(tcp_stream_test, unread_small_messages_do_not_use_up_the_pool) {
    auto [ours, theirs] = connect_raw();
    ::setsockopt(theirs.fd(), IPPROTO_TCP, TCP_NODELAY, std::array{1}.data(), sizeof(int));
    run([&]() -> task<> {
        std::array<std::byte, 8> small;
        EXPECT_FALSE(co_await with_timeout(ours.read_some(small), 1ms));
        std::string sent;
        for (int message = 0; message < 3000; ++message) {
            sent += noise(3, message);
            theirs.send(noise(3, message));
            if (message % 3 == 0) co_await yield();
        }
        std::string got(sent.size(), '\0');
        EXPECT_TRUE(co_await async_read_exact(ours, got));
        EXPECT_TRUE(got == sent);
    });
}

// --- writing -------------------------------------------------------------------------------------

TEST_P(tcp_stream_test, write_some_reaches_the_peer) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> { EXPECT_EQ((co_await ours.write_some("hello")).value_or(0), 5U); });
    EXPECT_EQ(theirs.receive(5), "hello");
}

TEST_P(tcp_stream_test, write_some_waits_for_room_and_takes_what_fits) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        const std::string much = noise(1 << 20);
        std::size_t written = 0;
        while (auto count = co_await with_timeout(
                   ours.write_some(const_buffer{much}.subspan(written)), 2ms)) {
            EXPECT_GT(*count, 0U);
            written += *count;
        }
        EXPECT_LT(written, much.size());

        auto draining = spawn([&]() -> task<> {
            co_await turns(3);
            EXPECT_TRUE(theirs.receive(written) == much.substr(0, written));
        });
        EXPECT_TRUE(co_await ours.write_some("x"));
        co_await draining;
    });
}

TEST_P(tcp_stream_test, vectored_writes_arrive_in_order_empty_buffers_included) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const std::array<const_buffer, 5> parts{const_buffer{}, const_buffer{"one "},
                                                const_buffer{}, const_buffer{"two"},
                                                const_buffer{}};
        EXPECT_EQ((co_await ours.write_some(std::span{parts})).value_or(0), 7U);
    });
    EXPECT_EQ(theirs.receive(7), "one two");
}

TEST_P(tcp_stream_test, hundreds_of_buffers_are_written_through_a_small_socket) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    testing::dice dice{11};
    std::vector<std::string> texts;
    std::string all;
    for (std::uint32_t each = 0; each < 700; ++each) {
        texts.push_back(dice.one_in(4) ? std::string{} : noise(dice.up_to(2000), each));
        all += texts.back();
    }
    const std::vector<const_buffer> parts{texts.begin(), texts.end()};
    std::string got;
    std::thread peer{[&] { got = theirs.receive(all.size()); }};
    run([&]() -> task<> {
        EXPECT_EQ((co_await async_write_all(ours, std::span{parts})).value_or(0), all.size());
    });
    peer.join();
    EXPECT_TRUE(got == all);
}

TEST_P(tcp_stream_test, only_empty_buffers_at_the_front_do_not_hide_the_bytes_behind_them) {
    auto [ours, theirs] = connect_raw();
    std::vector<const_buffer> parts(200);
    parts.push_back(const_buffer{"end"});
    run([&]() -> task<> {
        EXPECT_EQ((co_await ours.write_some(std::span{std::as_const(parts)})).value_or(0), 3U);
        EXPECT_EQ((co_await async_write_all(ours, std::span{std::as_const(parts)})).value_or(0),
                  3U);
    });
    EXPECT_EQ(theirs.receive(6), "endend");
}

// --- names and options ---------------------------------------------------------------------------

TEST_P(tcp_stream_test, a_stream_knows_both_ends) {
    auto [ours, theirs] = connected_pair();
    EXPECT_EQ(or_throw(ours.local_endpoint()), or_throw(theirs.remote_endpoint()));
    EXPECT_EQ(or_throw(ours.remote_endpoint()), or_throw(theirs.local_endpoint()));
}

TEST_P(tcp_stream_test, options_are_set_and_read_back) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("x"));
        EXPECT_TRUE(ours.set_no_delay(true));
        EXPECT_TRUE(ours.no_delay().value_or(false));
        EXPECT_TRUE(
            ours.set_keep_alive(keep_alive_options{.idle = 7s, .interval = 3s, .count = 2}));
        EXPECT_TRUE(ours.keep_alive().value_or(false));
        EXPECT_EQ(or_throw(ours.keep_alive_timing()).idle, 7s);
        EXPECT_TRUE(ours.set_receive_buffer(100000));
        EXPECT_GE(ours.receive_buffer().value_or(0), 100000U);
        EXPECT_TRUE(ours.set_send_buffer(100000));
        EXPECT_GE(ours.send_buffer().value_or(0), 100000U);
        EXPECT_TRUE(ours.set_user_timeout(1234ms));
        EXPECT_EQ(ours.user_timeout().value_or(0ms), 1234ms);
    });
}

TEST_P(tcp_stream_test, set_linger_accepts_only_zero_and_none) {
    auto [ours, theirs] = connect_raw();
    EXPECT_TRUE(ours.set_linger(0s));
    EXPECT_EQ(or_throw(ours.linger()), 0s);
    EXPECT_TRUE(ours.set_linger(std::nullopt));
    EXPECT_EQ(error_of(ours.set_linger(1s)), std::errc::invalid_argument);
    EXPECT_EQ(or_throw(ours.linger()), std::nullopt);
}

// --- large and many ------------------------------------------------------------------------------

TEST_P(tcp_stream_test, sixty_four_mebibytes_pass_both_ways_through_small_buffers) {
    auto [ours, theirs] = connected_pair({.ours = 65536, .theirs = 65536});
    constexpr std::size_t block_size = 1 << 20;
    constexpr std::size_t blocks = 64 / testing::patience;
    const std::string there = noise(block_size, 1);
    const std::string back = noise(block_size, 2);
    run(
        [&]() -> task<> {
            auto send = [](tcp_stream& to, const std::string& block) -> task<> {
                for (std::size_t each = 0; each < blocks; ++each)
                    EXPECT_TRUE(co_await async_write_all(to, block));
                EXPECT_TRUE(to.shutdown_write());
            };
            auto compare = [](std::string_view part, const std::string& block, std::size_t at) {
                while (!part.empty()) {
                    const std::size_t offset = at % block_size;
                    const std::size_t size = std::min(part.size(), block_size - offset);
                    if (part.substr(0, size) != std::string_view{block}.substr(offset, size))
                        return false;
                    part.remove_prefix(size);
                    at += size;
                }
                return true;
            };
            auto read = [&](tcp_stream& from, const std::string& block) -> task<std::size_t> {
                std::string buffer(100001, '\0');
                std::size_t at = 0;
                while (auto count = co_await from.read_some(buffer)) {
                    EXPECT_TRUE(compare({buffer.data(), *count}, block, at));
                    at += *count;
                }
                co_return at;
            };
            auto receive = [&](tcp_stream& from, const std::string& block) -> task<std::size_t> {
                std::size_t at = 0;
                while (auto lease = co_await from.receive()) {
                    EXPECT_TRUE(compare(testing::text_of(*lease), block, at));
                    at += lease->size();
                }
                co_return at;
            };
            auto [one, two, read_there, read_back] = co_await when_all(
                send(ours, there), send(theirs, back), receive(theirs, there), read(ours, back));
            EXPECT_EQ(read_there, blocks * block_size);
            EXPECT_EQ(read_back, blocks * block_size);
        },
        6 * testing::test_limit);
}

TEST_P(tcp_stream_test, a_thousand_connections_at_once_are_all_served) {
    constexpr std::size_t connections = 1000;
    std::size_t answered = 0;
    run(
        [&]() -> task<> {
            auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
            const endpoint at = or_throw(listener.local_endpoint());
            auto echo = [](tcp_stream stream) -> task<> {
                while (auto lease = co_await stream.receive()) {
                    if (!co_await async_write_all(stream, *lease)) break;
                }
            };
            auto serve = [&](task_group& group) -> task<> {
                for (std::size_t each = 0; each < connections; ++each) {
                    auto stream = co_await listener.accept();
                    EXPECT_TRUE(stream);
                    if (stream) group.spawn(echo(*std::move(stream)));
                }
            };
            auto client = [&](std::size_t id) -> task<> {
                auto stream = co_await async_connect(at);
                EXPECT_TRUE(stream) << error_of(stream).message();
                if (!stream) co_return;
                for (int round = 0; round < 3; ++round) {
                    const std::string text = "client " + std::to_string(id);
                    std::string answer(text.size(), '\0');
                    EXPECT_TRUE(co_await async_write_all(*stream, text));
                    EXPECT_TRUE(co_await async_read_exact(*stream, answer));
                    answered += answer == text;
                }
            };
            auto server = spawn([&]() -> task<> { EXPECT_TRUE(co_await with_group(serve)); });
            auto clients = [&](task_group& group) -> task<> {
                for (std::size_t each = 0; each < connections; ++each)
                    group.spawn(client(each));
                co_return;
            };
            EXPECT_TRUE(co_await with_group(clients));
            co_await server;
        },
        4 * testing::test_limit);
    EXPECT_EQ(answered, 3 * connections);
}

TEST_P(tcp_stream_test, shutdown_write_may_be_awaited_like_everything_else) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.shutdown_write());
        EXPECT_TRUE(co_await with_timeout(ours.shutdown_write(), 1s));
        ours.close();
        const auto refused = ours.shutdown_write();
        const result<> passed_on = fail(refused);
        EXPECT_EQ(error_of(passed_on), std::errc::bad_file_descriptor);
    });
}

TEST_P(tcp_stream_test, a_stop_has_the_same_code_everywhere) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        const auto stopped = std::make_error_code(std::errc::operation_canceled);
        std::stop_source source;
        source.request_stop();
        auto read = co_await with_stop(source.get_token(), ours.read_some(buffer));
        auto slept = co_await with_stop(source.get_token(), async_sleep(1h));
        EXPECT_EQ(error_of(read), stopped);
        EXPECT_EQ(error_of(slept), stopped);
    });
}

TEST_P(tcp_stream_test, a_stream_moved_into_a_task_closes_with_it_even_if_its_handle_lives) {
    run([]() -> task<> {
        auto pair = connected_pair();
        auto serve = [](tcp_stream stream) -> task<> {
            std::array<char, 8> buffer{};
            (void)co_await stream.read_some(buffer);
        };
        auto handle = spawn(serve(std::move(pair.ours)));
        EXPECT_TRUE(co_await async_write_all(pair.theirs, "x"));

        std::array<char, 8> buffer{};
        const auto got = co_await with_timeout(pair.theirs.read_some(buffer), 5s);
        EXPECT_EQ(error_of(got), errc::end_of_stream);
        EXPECT_TRUE(handle.done());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
