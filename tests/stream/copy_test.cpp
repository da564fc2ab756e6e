#include <simplenet/stream/copy.hpp>

#include "support/backend_test.hpp"
#include "support/copy_by_splice.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/sigpipe_watch.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/ioctl.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::copy_by_splice;
using testing::noise;
using testing::turns;
using testing::until;

static_assert(detail::leasing_reader<tcp_stream> && detail::leasing_reader<local_stream>);

/// A stream of somebody else's: small pieces, each in its own turn.
class piecemeal_stream {
public:
    explicit piecemeal_stream(std::string content, std::size_t room = 1U << 30U)
        : content_{std::move(content)}
        , room_{room} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        co_await yield();
        if (at_ == content_.size()) co_return fail(errc::end_of_stream);
        const std::size_t count = std::min({std::size_t{7}, into.size(), content_.size() - at_});
        std::copy_n(content_.data() + at_, count, reinterpret_cast<char*>(into.data()));
        at_ += count;
        co_return count;
    }
    task<result<std::size_t>> write_some(const_buffer from) {
        co_await yield();
        if (written_.size() == room_) co_return fail(std::errc::no_buffer_space);
        const std::size_t count = std::min({std::size_t{5}, from.size(), room_ - written_.size()});
        written_.append(reinterpret_cast<const char*>(from.data()), count);
        co_return count;
    }
    task<result<>> shutdown_write() {
        ended_ = true;
        co_return result<>{};
    }
    [[nodiscard]] const std::string& written() const { return written_; }
    [[nodiscard]] bool ended() const { return ended_; }

private:
    std::string content_;
    std::size_t room_;
    std::size_t at_ = 0;
    std::string written_;
    bool ended_ = false;
};

static_assert(!detail::leasing_reader<piecemeal_stream>);

/// What the peer can read without waiting.
std::size_t readable_at(testing::raw_peer& peer) {
    std::size_t total = 0;
    std::string scratch(1 << 20, '\0');
    for (;;) {
        const ssize_t count = ::recv(peer.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT);
        if (count <= 0) return total;
        total += static_cast<std::size_t>(count);
    }
}

class copy_test : public testing::backend_test {};

TEST_P(copy_test, everything_arrives_and_is_counted_however_small_the_sockets) {
    for (const int size : {0, 4096}) {
        auto [from, source] = connect_raw({.ours = size, .theirs = size});
        auto [to, sink] = connect_raw_local({.ours = size, .theirs = size});
        const std::string sent = noise(3'000'000);
        std::string got;
        std::thread sending{[&] {
            source.send(sent);
            source.shutdown_write();
        }};
        std::thread receiving{[&] { got = sink.receive(sent.size()); }};
        run([&]() -> task<> {
            EXPECT_EQ((co_await async_copy(from, to)).value_or(0), sent.size());
        });
        sending.join();
        receiving.join();
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(copy_test, pieces_of_any_size_arrive) {
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        testing::dice dice{seed};
        auto [from, source] = connect_raw();
        auto [to, sink] = connect_raw();
        const std::string sent = noise(2'000'000, seed);
        std::string got;
        std::thread receiving{[&] { got = sink.receive(sent.size()); }};
        run([&]() -> task<> {
            auto copying = spawn(async_copy(from, to));
            for (std::size_t at = 0; at < sent.size();) {
                const std::size_t most = dice.one_in(3) ? 200'000 : 5000;
                const std::size_t size = std::min(dice.up_to(most), sent.size() - at);
                source.send(std::string_view{sent}.substr(at, size));
                at += size;
                co_await turns(static_cast<int>(dice.up_to(3)));
            }
            source.shutdown_write();
            EXPECT_EQ((co_await copying).value_or(0), sent.size());
        });
        receiving.join();
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(copy_test, what_has_come_is_passed_on_before_more_comes) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        for (const char* word : {"one", "two", "three"}) {
            source.send(word);
            co_await until([&] { return sink.peek() > 0; });
            EXPECT_EQ(sink.receive(std::string_view{word}.size()), word);
        }
        source.shutdown_write();
        EXPECT_EQ((co_await copying).value_or(0), 11U);
        EXPECT_EQ(sink.peek(), -EAGAIN); // the end is not passed on
    });
}

TEST_P(copy_test, an_error_of_the_reader_is_reported_with_what_moved) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        source.send("abc");
        co_await until([&] { return sink.peek() > 0; });
        source.reset();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
        EXPECT_EQ(outcome.error().transferred, 3U);
    });
}

TEST_P(copy_test, an_error_of_the_writer_is_reported_with_what_it_took) {
    auto [from, source] = connect_raw();
    piecemeal_stream to{"", 13};
    source.send(noise(100));
    run([&]() -> task<> {
        const auto outcome = co_await async_copy(from, to);
        EXPECT_EQ(error_of(outcome), std::errc::no_buffer_space);
        EXPECT_EQ(outcome.error().transferred, 13U);
    });
}

TEST_P(copy_test, any_streams_can_be_copied) {
    piecemeal_stream from{noise(1000)};
    piecemeal_stream to{""};
    run([&]() -> task<> { EXPECT_EQ((co_await async_copy(from, to)).value_or(0), 1000U); });
    EXPECT_EQ(to.written(), noise(1000));
}

TEST_P(copy_test, a_stop_while_it_waits_for_the_reader_loses_nothing) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        source.send("abc");
        co_await until([&] { return sink.peek() > 0; });
        copying.request_stop();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_EQ(outcome.error().transferred, 3U);
        source.send("def");
        std::string rest(3, '\0');
        EXPECT_TRUE(co_await async_read_exact(from, rest));
        EXPECT_EQ(rest, "def");
    });
}

TEST_P(copy_test, a_stop_while_it_waits_for_the_writer_counts_to_the_byte) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw_local({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        source.send(std::string(200'000, 'x'));
        co_await turns(20); // the sink is full
        copying.request_stop();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_GT(outcome.error().transferred, 0U);
        EXPECT_EQ(outcome.error().transferred, readable_at(sink));
    });
}

// Between sockets a large amount goes through a pipe (splice(2)), which a stop leaves half full.
TEST_P(copy_test, a_stop_in_the_middle_of_a_large_amount_counts_to_the_byte_and_spoils_no_other) {
    for (int round = 0; round < 3; ++round) {
        auto [from, source] = connect_raw();
        auto [to, sink] = connect_raw_local({.ours = 65536, .theirs = 65536});
        const std::string sent = noise(8 << 20, static_cast<std::uint32_t>(round));
        run([&]() -> task<> {
            auto copying = spawn(async_copy(from, to));
            std::size_t offered = 0;
            std::string got;
            while (got.size() < 3U << 20U) { // slower than it comes, so that much is there at once
                std::string some(10'000, '\0');
                const ssize_t count = ::recv(sink.fd(), some.data(), some.size(), MSG_DONTWAIT);
                if (count > 0) got.append(some, 0, static_cast<std::size_t>(count));
                const ssize_t sending =
                    ::send(source.fd(), sent.data() + offered, sent.size() - offered, MSG_DONTWAIT);
                if (sending > 0) offered += static_cast<std::size_t>(sending);
                co_await turns(2);
            }
            copying.request_stop();
            const auto outcome = co_await copying;
            EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
            EXPECT_EQ(outcome.error().transferred, got.size() + readable_at(sink));
            EXPECT_TRUE(sent.starts_with(got));
        });
    }
}

TEST_P(copy_test, without_descriptors_for_a_pipe_bytes_are_copied) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    const std::string sent = noise(3 << 20);
    std::string got;
    std::thread sending{[&] {
        source.send(sent);
        source.shutdown_write();
    }};
    std::thread receiving{[&] { got = sink.receive(sent.size()); }};
    run([&]() -> task<> {
        co_await turns(3);
        const testing::descriptor_limit none{};
        EXPECT_EQ((co_await async_copy(from, to)).value_or(0), sent.size());
    });
    sending.join();
    receiving.join();
    EXPECT_TRUE(got == sent);
}

TEST_P(copy_test, a_peer_that_is_gone_in_the_middle_of_a_large_amount_is_an_error_and_no_signal) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    std::thread sending{[&] {
        const std::string block(1 << 20, 'x');
        while (::send(source.fd(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
        }
    }};
    std::thread receiving{[&] {
        static_cast<void>(sink.receive(5 << 20));
        sink.reset();
    }};
    run([&]() -> task<> {
        const auto outcome = co_await async_copy(from, to);
        EXPECT_TRUE(error_of(outcome) == std::errc::connection_reset ||
                    error_of(outcome) == std::errc::broken_pipe);
        from.close();
    });
    sending.join();
    receiving.join();
}

/// A copy that has moved much at once and waits for more.
class copy_after_much_test : public testing::backend_test {
protected:
    using copy_handle = join_handle<transfer_result>;

    static constexpr std::size_t much = 60'000; // less than any receive window

    task<> pass_on(testing::raw_peer& source, testing::raw_peer& sink, std::size_t size) {
        source.send(noise(size));
        co_await until([&] { return waiting(sink) == size; });
        EXPECT_TRUE(sink.receive(size) == noise(size));
    }

    void during(auto check) {
        auto body = [&]() -> task<> {
            auto copying = spawn(copy_by_splice(from_, to_));
            co_await pass_on(source_, sink_, much);
            co_await check(copying);
        };
        run(body);
    }
    /// Bytes that `sink` could receive.
    [[nodiscard]] static std::size_t waiting(const testing::raw_peer& sink) {
        int count = 0;
        EXPECT_EQ(::ioctl(sink.fd(), FIONREAD, &count), 0);
        return static_cast<std::size_t>(count);
    }

    testing::raw_connection<tcp_stream> in_ = connect_raw();
    testing::raw_connection<tcp_stream> out_ = connect_raw();
    tcp_stream& from_ = in_.ours;
    tcp_stream& to_ = out_.ours;
    testing::raw_peer& source_ = in_.theirs;
    testing::raw_peer& sink_ = out_.theirs;
};

TEST_P(copy_after_much_test, little_and_much_again_arrive) {
    during([&](copy_handle& copying) -> task<> {
        for (const std::size_t size : {std::size_t{3}, much, std::size_t{1}, much})
            co_await pass_on(source_, sink_, size);
        source_.shutdown_write();
        EXPECT_EQ((co_await copying).value_or(0), 3 * much + 4);
    });
}

TEST_P(copy_after_much_test, the_end_is_the_end) {
    during([&](copy_handle& copying) -> task<> {
        source_.shutdown_write();
        EXPECT_EQ((co_await copying).value_or(0), much);
    });
}

TEST_P(copy_after_much_test, an_error_is_reported_once_and_not_lost) {
    during([&](copy_handle& copying) -> task<> {
        source_.reset();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
        EXPECT_EQ(outcome.error().transferred, much);
    });
}

// A peer that closes without a reset answers what still comes with one: in the middle of a
// splice(2) of many sends, which ends short and with a SIGPIPE. It used to end the process.
TEST_P(copy_after_much_test, a_reset_in_the_middle_of_a_splice_raises_no_signal) {
    remake_loop({.read_ahead = 1}); // so that io_uring leaves it to splice(2)
    const testing::sigpipe_watch sigpipes;
    during([&](copy_handle& copying) -> task<> {
        // A slow reader at first: it makes the windows grow, so that much comes at once.
        for (std::size_t moved = 0, sent = 0; moved < 8U << 20U || moved < sent;) {
            if (moved < 8U << 20U) sent += source_.send_until_full(std::string(1 << 20, 'x'));
            co_await turns(20);
            moved += readable_at(sink_);
        }
        sink_.close();
        source_.send_until_full(std::string(1 << 20, 'x'));
        const auto outcome = co_await copying;
        EXPECT_TRUE(error_of(outcome) == std::errc::broken_pipe ||
                    error_of(outcome) == std::errc::connection_reset);
    });
    EXPECT_EQ(sigpipes.delivered(), 0);
}

// splice(2) does not pass over an urgent byte, says that nothing is there, and no edge follows.
TEST_P(copy_after_much_test, bytes_behind_an_urgent_one_are_not_left_behind) {
    for (const int when : {0, 1, 3}) {
        during([&](copy_handle& copying) -> task<> {
            source_.send(noise(much));
            if (when == 1) co_await turns(1);
            source_.send("!", MSG_OOB);
            if (when == 3) co_await turns(3);
            source_.send("behind");
            co_await until([&] { return waiting(sink_) == much + 6; });
            EXPECT_EQ(sink_.receive(much + 6), noise(much) + "behind");
            copying.request_stop();
            static_cast<void>(co_await copying);
        });
    }
}

TEST_P(copy_after_much_test, the_loop_sleeps_while_nothing_moves) {
    const auto expect_sleep = [&](const char* when) -> task<> {
        // The kernel may be moving bytes still. That ends, and a spin does not.
        std::uint64_t least = 10;
        for (int round = 0; least >= 10 && round < 50; ++round) {
            const auto before = loop().metrics().turns;
            EXPECT_TRUE(co_await async_sleep(30ms));
            least = loop().metrics().turns - before;
        }
        EXPECT_LT(least, 10U) << when;
    };
    during([&](copy_handle& copying) -> task<> {
        co_await expect_sleep("after much");
        co_await pass_on(source_, sink_, 3);
        co_await expect_sleep("after little");
        co_await pass_on(source_, sink_, much);
        source_.send("!", MSG_OOB);
        co_await expect_sleep("at an urgent byte");
        for (int round = 0; round < 50; ++round) {
            source_.send_until_full(noise(much));
            co_await turns(20);
        }
        co_await expect_sleep("with bytes unread and a sink that is full");
        while (readable_at(sink_) != 0)
            co_await turns(20);
        co_await expect_sleep("after it was full");
        copying.request_stop();
        static_cast<void>(co_await copying);
    });
}

TEST_P(copy_after_much_test, a_stop_loses_nothing) {
    during([&](copy_handle& copying) -> task<> {
        copying.request_stop();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        EXPECT_EQ(outcome.error().transferred, much);
        source_.send("def");
        std::string rest(3, '\0');
        EXPECT_TRUE(co_await async_read_exact(from_, rest));
        EXPECT_EQ(rest, "def");
    });
}

TEST_P(copy_after_much_test, a_close_from_beside_ends_it) {
    during([&](copy_handle& copying) -> task<> {
        from_.close();
        EXPECT_EQ(error_of(co_await copying), std::errc::operation_canceled);
    });
}

// It would hold two descriptors for each idle copy.
TEST_P(copy_after_much_test, it_holds_no_pipe_while_it_waits) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    auto beside = [&]() -> task<> {
        const std::size_t before = testing::open_descriptors(); // with the spare pipe
        auto copying = spawn(copy_by_splice(from, to));
        co_await pass_on(source, sink, much);
        EXPECT_EQ(testing::open_descriptors(), before);
        copying.request_stop();
        static_cast<void>(co_await copying);
    };
    during([&](copy_handle& copying) -> task<> {
        co_await beside();
        copying.request_stop();
        static_cast<void>(co_await copying);
    });
}

TEST_P(copy_test, copies_that_cannot_write_leave_receive_buffers_to_others) {
    remake_loop({.receive_pool = 65536});
    std::vector<testing::raw_connection<tcp_stream>> sources;
    std::vector<testing::raw_connection<local_stream>> sinks;
    for (int count = 0; count < 12; ++count) {
        sources.push_back(connect_raw());
        sinks.push_back(connect_raw_local({.ours = 4096, .theirs = 4096}));
    }
    auto [other, peer] = connect_raw();
    run([&]() -> task<> {
        std::vector<join_handle<transfer_result>> copies;
        for (std::size_t at = 0; at < sources.size(); ++at) {
            copies.push_back(spawn(async_copy(sources[at].ours, sinks[at].ours)));
            sources[at].theirs.send(std::string(40'000, 'x'));
        }
        co_await turns(50); // every sink is full
        peer.send("still here");
        const auto lease = co_await with_timeout(other.receive(), testing::test_limit / 2);
        EXPECT_TRUE(lease);
        for (auto& copy : copies) {
            copy.request_stop();
            static_cast<void>(co_await copy);
        }
    });
}

TEST_P(copy_test, a_busy_copy_lets_others_run) {
    auto [from, source] = connect_raw();
    auto [to, sink] = connect_raw();
    std::thread sending{[&] {
        const std::string block(1 << 20, 'x');
        for (int count = 0; count < 64; ++count)
            source.send(block);
        source.shutdown_write();
    }};
    std::thread receiving{[&] { static_cast<void>(sink.receive(64U << 20U)); }};
    run([&]() -> task<> {
        auto copying = spawn(async_copy(from, to));
        int rounds = 0;
        while (!copying.done()) {
            co_await yield();
            ++rounds;
        }
        EXPECT_GE(rounds, 32);
        EXPECT_EQ((co_await copying).value_or(0), 64U << 20U);
    });
    sending.join();
    receiving.join();
}

// --- both ways
// ------------------------------------------------------------------------------------

TEST_P(copy_test, both_ways_each_end_is_passed_on_and_the_other_way_goes_on) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw_local();
    run([&]() -> task<> {
        auto copying = spawn(async_copy_bidirectional(a, b));
        left.send("question");
        left.shutdown_write();
        co_await until([&] { return right.peek() > 0; });
        EXPECT_EQ(right.receive(8), "question");
        co_await until([&] { return right.peek() == 0; });
        EXPECT_FALSE(copying.done());
        right.send("answer");
        co_await until([&] { return left.peek() > 0; });
        EXPECT_EQ(left.receive(6), "answer");
        EXPECT_EQ(left.peek(), -EAGAIN);
        right.shutdown_write();
        const auto counts = co_await copying;
        EXPECT_EQ(counts, (copy_counts{.a_to_b = 8, .b_to_a = 6}));
        EXPECT_EQ(left.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(copy_test, both_ways_at_once_every_byte_arrives) {
    auto [a, left] = connect_raw({.ours = 8192, .theirs = 8192});
    auto [b, right] = connect_raw();
    const std::string to_right = noise(2'000'000, 1);
    const std::string to_left = noise(3'000'000, 2);
    std::string at_right;
    std::string at_left;
    std::vector<std::thread> peers;
    peers.emplace_back([&] {
        left.send(to_right);
        left.shutdown_write();
    });
    peers.emplace_back([&] { at_left = left.receive(to_left.size()); });
    peers.emplace_back([&] {
        right.send(to_left);
        right.shutdown_write();
    });
    peers.emplace_back([&] { at_right = right.receive(to_right.size()); });
    run([&]() -> task<> {
        const auto counts = co_await async_copy_bidirectional(a, b);
        EXPECT_EQ(counts, (copy_counts{.a_to_b = to_right.size(), .b_to_a = to_left.size()}));
    });
    for (std::thread& each : peers)
        each.join();
    EXPECT_TRUE(at_right == to_right);
    EXPECT_TRUE(at_left == to_left);
}

TEST_P(copy_test, both_ways_an_error_in_one_stops_the_other_and_the_counts_are_exact) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy_bidirectional(a, b));
        left.send("abcde");
        right.send("xyz");
        co_await until([&] { return right.peek() > 0 && left.peek() > 0; });
        right.reset();
        const auto outcome = co_await copying;
        EXPECT_EQ(error_of(outcome), std::errc::connection_reset);
        EXPECT_EQ(outcome.error().message(), outcome.error().code.message());
        EXPECT_EQ(outcome.error().counts, (copy_counts{.a_to_b = 5, .b_to_a = 3}));
        left.send("f"); // a is intact
        std::string rest(1, '\0');
        EXPECT_TRUE(co_await async_read_exact(a, rest));
        EXPECT_EQ(rest, "f");
    });
}

TEST_P(copy_test, both_ways_a_limit_stops_both_and_the_counts_are_exact) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw_local({.ours = 4096, .theirs = 4096});
    right.send("ab");
    left.send(std::string(300'000, 'x'));
    run([&]() -> task<> {
        const auto outcome = co_await with_timeout(async_copy_bidirectional(a, b), 50ms);
        EXPECT_EQ(error_of(outcome), errc::deadline_exceeded);
        EXPECT_EQ(outcome.error().counts.a_to_b, readable_at(right));
        EXPECT_EQ(outcome.error().counts.b_to_a, 2U);
    });
}

TEST_P(copy_test, both_ways_a_close_from_beside_ends_it) {
    auto [a, left] = connect_raw();
    auto [b, right] = connect_raw();
    run([&]() -> task<> {
        auto copying = spawn(async_copy_bidirectional(a, b));
        co_await turns(3);
        b.close();
        EXPECT_EQ(error_of(co_await copying), std::errc::operation_canceled);
    });
}

TEST_P(copy_test, both_ways_between_any_streams) {
    piecemeal_stream a{"from a"};
    piecemeal_stream b{"and from b"};
    run([&]() -> task<> {
        const auto counts = co_await async_copy_bidirectional(a, b);
        EXPECT_EQ(counts, (copy_counts{.a_to_b = 6, .b_to_a = 10}));
    });
    EXPECT_EQ(a.written(), "and from b");
    EXPECT_EQ(b.written(), "from a");
    EXPECT_TRUE(a.ended() && b.ended());
}

TEST_P(copy_test, a_loop_that_ends_ends_its_copies) {
    for (int polls = 0; polls < 5; ++polls) {
        auto [a, left] = connect_raw();
        auto [b, right] = connect_raw_local({.ours = 4096, .theirs = 4096});
        left.send(std::string(100'000, 'x'));
        loop().spawn([](tcp_stream from, local_stream to) -> task<> {
            const auto outcome = co_await async_copy_bidirectional(from, to);
            EXPECT_EQ(error_of(outcome), std::errc::operation_canceled);
        }(std::move(a), std::move(b)));
        for (int count = 0; count < polls; ++count)
            loop().poll();
        remake_loop();
    }
}

INSTANTIATE_TEST_SUITE_P(backends, copy_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, copy_after_much_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
