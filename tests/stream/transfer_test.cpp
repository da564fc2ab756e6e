#include <simplenet/stream/transfer.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::noise;
using testing::turns;

/// A foreign stream: moves at most `piece` bytes at a time, each in its own turn, and ends or fails
/// after `left` bytes.
class ending_stream {
public:
    ending_stream(std::string content, std::size_t piece, std::error_code end)
        : content_{std::move(content)}
        , piece_{piece}
        , end_{end} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        co_await yield();
        if (co_await this_task::stop_requested()) co_return fail(std::errc::operation_canceled);
        if (at_ == content_.size()) co_return fail(end_);
        const std::size_t count = std::min({piece_, into.size(), content_.size() - at_});
        std::memcpy(into.data(), content_.data() + at_, count);
        at_ += count;
        co_return count;
    }
    task<result<std::size_t>> write_some(const_buffer from) {
        co_await yield();
        if (written_.size() == content_.size()) co_return fail(end_);
        const std::size_t count =
            std::min({piece_, from.size(), content_.size() - written_.size()});
        written_.append(reinterpret_cast<const char*>(from.data()), count);
        co_return count;
    }
    [[nodiscard]] const std::string& written() const { return written_; }

private:
    std::string content_;
    std::size_t piece_;
    std::error_code end_;
    std::size_t at_ = 0;
    std::string written_;
};

static_assert(async_reader<tcp_stream> && async_writer<tcp_stream>);
static_assert(async_reader<local_stream> && async_writer<local_stream>);
static_assert(async_reader<ending_stream> && async_writer<ending_stream>);
static_assert(!async_reader<int> && !async_writer<std::string>);

/// Accepts several buffers at a time, and at most `piece` bytes of them.
struct gathering_stream {
    std::size_t piece;
    std::error_code end = {};
    std::size_t left = std::string::npos; // bytes before `end`
    std::string written = {};
    std::size_t writes = 0;

    task<result<std::size_t>> write_some(const_buffer from) {
        const std::array<const_buffer, 1> one{from};
        co_return co_await write_some(one);
    }
    task<result<std::size_t>> write_some(std::span<const const_buffer> from) {
        co_await yield();
        ++writes;
        if (left == 0) co_return fail(end);
        const std::size_t before = written.size();
        for (const const_buffer& each : from) {
            const std::size_t count =
                std::min({each.size(), piece - (written.size() - before), left});
            written.append(reinterpret_cast<const char*>(each.data()), count);
            left -= count;
        }
        co_return written.size() - before;
    }
};

class transfer_test : public testing::backend_test {};

// A recv(2) ends at the urgent byte (tcp(7)), and no event announces the bytes after it. Only one
// at a time: when a second one arrives, an older one that was not skipped yet becomes ordinary.
TEST_P(transfer_test, read_exact_skips_an_urgent_byte) {
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        testing::dice dice{seed};
        auto [ours, theirs] = connect_raw();
        const std::size_t size = dice.up_to(3) == 3 ? 40'000 : 200;
        run([&]() -> task<> {
            for (std::uint32_t round = 0; round < 4; ++round) {
                const std::string sent = noise(size, round);
                std::string got(size, '\0');
                auto reading = spawn([&]() -> task<transfer_result> {
                    co_return co_await async_read_exact(ours, got);
                });
                co_await turns(static_cast<int>(dice.up_to(4)) - 1);
                const std::size_t at = dice.up_to(size - 1);
                theirs.send(sent.substr(0, at));
                theirs.send("!", MSG_OOB);
                if (dice.one_in(2)) co_await turns(static_cast<int>(dice.up_to(3)));
                theirs.send(sent.substr(at));
                const auto outcome = co_await with_timeout(std::move(reading), 1s);
                EXPECT_EQ(outcome.value_or(0), size) << "seed " << seed << ", round " << round;
                EXPECT_TRUE(got == sent) << "seed " << seed << ", round " << round;
            }
        });
    }
}

TEST_P(transfer_test, read_exact_fills_the_buffer_from_pieces_of_any_size) {
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        testing::dice dice{seed};
        auto [ours, theirs] = connect_raw();
        const std::string sent = noise(10000, seed);
        run([&]() -> task<> {
            std::string got(sent.size(), '\0');
            auto reading = spawn(
                [&]() -> task<transfer_result> { co_return co_await async_read_exact(ours, got); });
            for (std::size_t at = 0; at < sent.size();) {
                const std::size_t size = std::min(dice.up_to(700), sent.size() - at);
                theirs.send(std::string_view{sent}.substr(at, size));
                at += size;
                co_await turns(static_cast<int>(dice.up_to(2)));
            }
            EXPECT_EQ((co_await reading).value_or(0), sent.size());
            EXPECT_TRUE(got == sent);
        });
    }
}

TEST_P(transfer_test, read_exact_takes_no_byte_more) {
    auto [ours, theirs] = connect_raw();
    theirs.send("abcdef");
    run([&]() -> task<> {
        std::string got(3, '\0');
        EXPECT_TRUE(co_await async_read_exact(ours, got));
        EXPECT_EQ(got, "abc");
        EXPECT_TRUE(co_await async_read_exact(ours, got));
        EXPECT_EQ(got, "def");
    });
}

TEST_P(transfer_test, read_exact_reports_the_end_with_the_bytes_before_it) {
    auto [ours, theirs] = connect_raw();
    theirs.send("abc");
    theirs.shutdown_write();
    run([&]() -> task<> {
        std::string got(10, '?');
        auto count = co_await async_read_exact(ours, got);
        EXPECT_EQ(error_of(count), errc::end_of_stream);
        EXPECT_EQ(count.error().transferred, 3U);
        EXPECT_EQ(got, "abc???????");
        count = co_await async_read_exact(ours, got);
        EXPECT_EQ(count.error(), errc::end_of_stream);
        EXPECT_EQ(count.error().transferred, 0U);
    });
}

TEST_P(transfer_test, read_exact_reports_a_reset_with_the_bytes_before_it) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        std::string got(10, '?');
        auto reading = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_read_exact(ours, got); });
        co_await turns(2);
        theirs.send("abc");
        co_await turns(5);
        theirs.reset();
        auto count = co_await reading;
        EXPECT_EQ(error_of(count), std::errc::connection_reset);
        EXPECT_EQ(count.error().transferred, 3U);
    });
}

TEST_P(transfer_test, write_all_writes_everything_through_a_small_socket) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(3 << 20);
    std::string got;
    std::thread peer{[&] { got = theirs.receive(sent.size()); }};
    run([&]() -> task<> {
        EXPECT_EQ((co_await async_write_all(ours, sent)).value_or(0), sent.size());
    });
    peer.join();
    EXPECT_TRUE(got == sent);
}

TEST_P(transfer_test, write_all_of_several_buffers_counts_them_together) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const std::array<const_buffer, 4> parts{const_buffer{"a"}, const_buffer{},
                                                const_buffer{"bc"}, const_buffer{"def"}};
        EXPECT_EQ((co_await async_write_all(ours, std::span{parts})).value_or(0), 6U);
    });
    EXPECT_EQ(theirs.receive(6), "abcdef");
}

TEST_P(transfer_test, any_stream_with_read_some_supports_read_exact) {
    ending_stream stream{"0123456789", 3, errc::end_of_stream};
    run([&]() -> task<> {
        std::string got(8, '\0');
        EXPECT_EQ((co_await async_read_exact(stream, got)).value_or(0), 8U);
        EXPECT_EQ(got, "01234567");
        auto rest = co_await async_read_exact(stream, got);
        EXPECT_EQ(error_of(rest), errc::end_of_stream);
        EXPECT_EQ(rest.error().transferred, 2U);
        EXPECT_EQ((co_await async_read_exact(stream, mutable_buffer{})).value_or(9), 0U);
    });
}

TEST_P(transfer_test, any_stream_with_write_some_supports_write_all) {
    ending_stream stream{std::string(10, ' '), 4, make_error_code(errc::end_of_stream)};
    run([&]() -> task<> {
        EXPECT_EQ((co_await async_write_all(stream, "0123")).value_or(0), 4U);
        const std::array<const_buffer, 3> parts{const_buffer{"45"}, const_buffer{},
                                                const_buffer{"6789ab"}};
        auto outcome = co_await async_write_all(stream, std::span<const const_buffer>{parts});
        EXPECT_EQ(error_of(outcome), errc::end_of_stream);
        EXPECT_EQ(outcome.error().transferred, 6U);
        EXPECT_EQ(stream.written(), "0123456789");
    });
}

// Not one write for each buffer.
TEST_P(transfer_test, several_buffers_are_sent_together_if_the_stream_supports_it) {
    const std::string text = noise(1'000);
    std::vector<const_buffer> buffers(3); // empty ones at both ends and in between
    for (std::size_t at = 0; at < text.size(); at += 25) {
        buffers.push_back(const_buffer{text}.subspan(at, 25));
        if (at % 10 == 0) buffers.emplace_back();
    }

    run([&]() -> task<> {
        gathering_stream whole{.piece = 10'000};
        EXPECT_EQ((co_await async_write_all(whole, buffers)).value_or(0), text.size());
        EXPECT_EQ(whole.written, text);
        EXPECT_LE(whole.writes, 5U);

        for (const std::size_t piece : {1, 7, 24, 25, 26, 999}) {
            gathering_stream pieces{.piece = piece};
            EXPECT_EQ((co_await async_write_all(pieces, buffers)).value_or(0), text.size());
            EXPECT_EQ(pieces.written, text);
        }

        gathering_stream breaks{
            .piece = 60, .end = std::make_error_code(std::errc::connection_reset), .left = 130};
        const auto count = co_await async_write_all(breaks, buffers);
        EXPECT_EQ(error_of(count), std::errc::connection_reset);
        EXPECT_EQ(count.error().transferred, 130U);
        EXPECT_EQ(breaks.written, text.substr(0, 130));
    });
}

TEST_P(transfer_test, a_limit_around_a_transfer_reports_the_bytes_moved) {
    ending_stream stream{std::string(1000, 'x'), 1, errc::end_of_stream};
    run([&]() -> task<> {
        std::string got(1000, '\0');
        auto reading = spawn(
            [&]() -> task<transfer_result> { co_return co_await async_read_exact(stream, got); });
        co_await turns(50);
        reading.request_stop();
        auto outcome = co_await reading;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_GT(outcome.error().transferred, 10U);
        EXPECT_LT(outcome.error().transferred, 60U);
    });
}

// The same holds on foreign streams and on the runtime's.
TEST_P(transfer_test, an_empty_transfer_is_refused_in_a_stopped_scope_on_every_stream) {
    auto [local, peer] = or_throw(local_stream::pair());
    ending_stream foreign{"", 1, errc::end_of_stream};
    const auto all = [](auto& stream) -> task<> {
        std::array<std::byte, 1> byte{};
        const auto none = std::span{byte}.first(0);
        const std::array<const_buffer, 2> nothing{};
        EXPECT_EQ(error_of(co_await async_read_exact(stream, none)), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await async_write_all(stream, "")), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await async_write_all(stream, nothing)),
                  std::errc::operation_canceled);
    };
    run([&]() -> task<> {
        auto stopped = spawn([&]() -> task<> {
            (void)co_await async_sleep(1h);
            co_await all(local);
            co_await all(foreign);
        });
        co_await turns(3);
        stopped.request_stop();
        co_await stopped;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, transfer_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
