// What the upper layers need from streams, as the contract spells it. Behaviour in detail is tested
// beside each header; this file breaks when a name, a parameter or a default changes.

#include <simplenet/simplenet.hpp>

#include "support/backend_test.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace {

using namespace simplenet;
using namespace std::chrono_literals;

template <class T>
constexpr bool is_options = std::is_aggregate_v<T> && std::is_trivially_destructible_v<T> &&
                            std::is_trivially_copyable_v<T>;

static_assert(is_options<write_options> && is_options<send_file_options> &&
              is_options<linger_options> && is_options<listen_options> && is_options<pool_options>);
static_assert(!write_options{}.more);
static_assert(linger_options{}.bytes == 1024 * 1024 && linger_options{}.time == 2s);
static_assert(listen_options{}.accept_ahead == 64 && !listen_options{}.steer_by_cpu);
static_assert(pool_options{}.per_key == 8 && pool_options{}.total == 256);
static_assert(pool_options{}.idle == 30s && pool_options{}.wait == 10s);
static_assert(std::same_as<decltype(listen_options::accept_ahead), unsigned>);

static_assert(std::movable<scratch> && !std::copyable<scratch>);
static_assert(std::movable<received> && !std::copyable<received>);
static_assert(std::movable<pooled<tcp_stream>>);

class contract_streams : public simplenet::testing::own_loops_test {
protected:
    [[nodiscard]] static loop_options loop() { return {.backend = GetParam()}; }
};

task<std::pair<tcp_stream, tcp_stream>> connected() {
    auto listener = or_throw(tcp_listener::bind(
        endpoint::loopback(0), {.reuse_port = false, .accept_ahead = 0, .steer_by_cpu = false}));
    auto client = or_throw(co_await async_connect(or_throw(listener.local_endpoint())));
    auto server = or_throw(co_await listener.accept());
    co_return std::pair{std::move(client), std::move(server)};
}
task<std::pair<local_stream, local_stream>> connected_locally() {
    auto listener = or_throw(local_listener::bind(or_throw(local_endpoint::abstract("contract"))));
    const auto at = or_throw(listener.local_endpoint());
    auto client = or_throw(co_await async_connect(at));
    auto server = or_throw(co_await listener.accept());
    co_return std::pair{std::move(client), std::move(server)};
}

template <class Stream>
task<std::string> text_of(Stream& stream, std::size_t count) {
    std::string text(count, '\0');
    or_throw(co_await async_read_exact(stream, text));
    co_return text;
}

/// Every form of writing and waiting that a stream has.
template <class Stream>
task<> write_and_read(Stream a, Stream b) {
    static_assert(std::same_as<decltype(a.try_receive()), result<received>>);
    static_assert(std::same_as<decltype(a.try_write_some(const_buffer{})), result<std::size_t>>);
    const std::array<const_buffer, 2> two{"he", "ad"};
    const std::span<const const_buffer> several{two};
    static_assert(std::same_as<decltype(a.try_write_some(several)), result<std::size_t>>);

    EXPECT_EQ(a.try_receive().error(), std::errc::operation_would_block);
    const result<std::size_t> some = co_await a.write_some("1", write_options{.more = true});
    EXPECT_EQ(some, 1U);
    EXPECT_EQ(co_await a.write_some(several, write_options{.more = true}), 4U);
    EXPECT_EQ(co_await a.write_some(two, {.more = true}), 4U);
    EXPECT_EQ(co_await a.write_some("2"), 1U);
    EXPECT_EQ(co_await a.write_some(several), 4U);
    transfer_result all = co_await async_write_all(a, "3", write_options{.more = true});
    EXPECT_EQ(all, 1U);
    all = co_await async_write_all(a, several, write_options{.more = true});
    EXPECT_EQ(all, 4U);
    all = co_await async_write_all(a, two, {});
    EXPECT_EQ(all, 4U);
    EXPECT_EQ(a.try_write_some("4"), 1U);
    EXPECT_EQ(a.try_write_some(several), 4U);

    result<> there = co_await b.readable();
    EXPECT_TRUE(there);
    there = co_await with_timeout(b.readable(), 1h);
    EXPECT_TRUE(there);
    EXPECT_EQ(co_await text_of(b, 28), "1headhead2head3headhead4head");

    const result<> told = co_await async_shutdown_write(a);
    EXPECT_TRUE(told);
    there = co_await b.readable();
    EXPECT_TRUE(there);
    EXPECT_EQ(b.try_receive().error(), errc::end_of_stream);
}

template <class Stream>
task<> send_a_file(Stream a, Stream b) {
    char path[] = "/tmp/simplenet_contract_XXXXXX";
    const unique_fd file{::mkstemp(path)};
    ::unlink(path);
    EXPECT_EQ(::write(file.get(), "file", 4), 4);
    const std::string tail = "tail";
    transfer_result sent = co_await async_send_file(
        a, file.get(), 0, 4, send_file_options{.head = "head", .tail = tail});
    EXPECT_EQ(sent, 12U);
    sent = co_await async_send_file(a, file.get(), 1, 2, {.head = "<"});
    EXPECT_EQ(sent, 3U);
    sent = co_await async_send_file(a, file.get(), 0, 100);
    EXPECT_EQ(sent, 4U);
    EXPECT_EQ(co_await text_of(b, 19), "headfiletail<ilfile");
}

TEST_P(contract_streams, tcp_streams_have_every_form) {
    simplenet::run(
        []() -> task<> {
            auto [a, b] = co_await connected();
            co_await write_and_read(std::move(a), std::move(b));
            auto [c, d] = co_await connected();
            co_await send_a_file(std::move(c), std::move(d));
        }(),
        loop());
}

TEST_P(contract_streams, local_streams_have_every_form) {
    simplenet::run(
        []() -> task<> {
            auto [a, b] = co_await connected_locally();
            co_await write_and_read(std::move(a), std::move(b));
            auto [c, d] = co_await connected_locally();
            co_await send_a_file(std::move(c), std::move(d));
        }(),
        loop());
}

TEST_P(contract_streams, streams_that_are_not_sockets_have_every_form) {
    simplenet::run(
        []() -> task<> {
            auto [a, b] = duplex();
            co_await write_and_read(std::move(a), std::move(b));
            auto [c, d] = duplex();
            co_await send_a_file(std::move(c), std::move(d));
            auto [e, f] = co_await connected();
            co_await write_and_read(any_stream{std::move(e)}, any_stream{std::move(f)});
        }(),
        loop());
}

TEST_P(contract_streams, leases_split) {
    simplenet::run(
        []() -> task<> {
            auto [a, b] = co_await connected();
            or_throw(co_await async_write_all(a, "head and body"));
            received whole = or_throw(co_await b.receive());
            received head = whole.split(4);
            EXPECT_EQ(head.size(), 4U);
            EXPECT_EQ(whole.size(), 9U);
            EXPECT_EQ(static_cast<char>(*head.data()), 'h');
            EXPECT_EQ(const_buffer{whole}.size(), 9U);
            const loop_metrics now = event_loop::current()->metrics();
            EXPECT_EQ(now.receive_pool_leased, 1U);
            EXPECT_EQ(now.receive_pool_overflow, 0U);
        }(),
        loop());
}

TEST_P(contract_streams, scratch_is_borrowed) {
    simplenet::run(
        []() -> task<> {
            const scratch memory = scratch::borrow(5000);
            static_assert(std::same_as<decltype(memory.data()), std::byte*>);
            EXPECT_EQ(memory.size(), 5000U);
            memory.data()[4999] = std::byte{1};
            co_return;
        }(),
        loop());
}

task<> stay(tcp_stream stream, std::unique_ptr<int> number, std::string text) {
    or_throw(co_await async_write_all(stream, text + std::to_string(*number)));
}
task<> stay_without_arguments(tcp_stream stream) {
    or_throw(co_await async_write_all(stream, "alone"));
}
struct stays {
    task<> operator()(tcp_stream stream, int number) const {
        or_throw(co_await async_write_all(stream, std::to_string(number)));
    }
};

TEST_P(contract_streams, connections_are_handed_over) {
    auto group = or_throw(event_loop_group::create({.loops = 1, .loop = loop()}));
    event_loop& there = group[0];
    simplenet::run(
        [](event_loop& to) -> task<> {
            auto [a, b] = co_await connected();
            hand_over(to, std::move(b), stay, std::make_unique<int>(7), "number ");
            EXPECT_EQ(co_await text_of(a, 8), "number 7");
            auto [c, d] = co_await connected();
            const result<> left = co_await hand_over(to, std::move(d), &stay_without_arguments);
            EXPECT_TRUE(left);
            EXPECT_EQ(co_await text_of(c, 5), "alone");
            auto [e, f] = co_await connected();
            EXPECT_TRUE(hand_over(to, std::move(f), stays{}, 42));
            EXPECT_EQ(co_await text_of(e, 2), "42");
            auto [g, h] = co_await connected();
            const std::string captured = "captured";
            auto closure = [captured](tcp_stream stream) -> task<> {
                or_throw(co_await async_write_all(stream, captured));
            };
            hand_over(to, std::move(h), closure);
            EXPECT_EQ(co_await text_of(g, 8), "captured");
        }(there),
        loop());
}

TEST_P(contract_streams, streams_close_lingering) {
    simplenet::run(
        []() -> task<> {
            auto [a, b] = co_await connected();
            b.close();
            result<> closed = co_await async_close_lingering(a);
            EXPECT_TRUE(closed);
            auto [c, d] = co_await connected();
            d.close();
            closed = co_await async_close_lingering(std::move(c),
                                                    linger_options{.bytes = 1024, .time = 1s});
            EXPECT_TRUE(closed);
            auto [e, f] = duplex();
            f.close();
            closed = co_await async_close_lingering(std::move(e), {.time = 1s});
            EXPECT_TRUE(closed);
        }(),
        loop());
}

task<result<tcp_stream>> connect_to(std::string_view key) {
    co_return co_await async_connect(or_throw(endpoint::parse(key)));
}

TEST_P(contract_streams, connections_are_pooled) {
    simplenet::run(
        []() -> task<> {
            auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
            const std::string key = or_throw(listener.local_endpoint()).to_string();

            connection_pool<tcp_stream> pool{connect_to};
            {
                pooled<tcp_stream> lent = or_throw(co_await pool.borrow(key));
                EXPECT_GE(lent->native_handle(), 0);
                EXPECT_TRUE((*lent).set_no_delay(true));
                lent.give_back();
            }
            auto again = co_await pool.borrow(key);
            EXPECT_TRUE(again);

            std::size_t connected = 0;
            const std::string at = key;
            auto connect = [&connected, at](std::string_view asked) -> task<result<tcp_stream>> {
                ++connected;
                EXPECT_EQ(asked, at);
                co_return co_await async_connect(or_throw(endpoint::parse(at)));
            };
            connection_pool<tcp_stream> limited{connect, {.per_key = 1, .total = 2, .wait = 1ms}};
            auto first = co_await limited.borrow(key);
            EXPECT_TRUE(first);
            auto second = co_await limited.borrow(key);
            EXPECT_EQ(second.error(), errc::deadline_exceeded);
            EXPECT_EQ(connected, 1U);

            connection_pool<tcp_stream> inline_pool{
                [](std::string_view asked) -> task<result<tcp_stream>> {
                    co_return co_await async_connect(or_throw(endpoint::parse(asked)));
                },
                pool_options{.idle = 1s}};
            auto third = co_await inline_pool.borrow(key);
            EXPECT_TRUE(third);
        }(),
        loop());
}

template <class Stream>
task<> exchange_frames(Stream a, Stream b, frame_format format) {
    frame_writer<Stream> writer{std::move(a), format};
    frame_reader<Stream> reader{std::move(b), format};
    result<> written = co_await writer.write_frame("a frame");
    EXPECT_TRUE(written);
    written = co_await writer.write_frame(std::string(200, 'x'));
    EXPECT_TRUE(written);
    result<std::span<const std::byte>> body = co_await reader.read_frame(1024);
    EXPECT_EQ(body->size(), 7U);
    body = co_await reader.read_frame(100);
    EXPECT_EQ(body.error(), errc::limit_exceeded);
    body = co_await reader.read_frame(200);
    EXPECT_EQ(body->size(), 200U);
}

TEST_P(contract_streams, frames_have_any_prefix) {
    simplenet::run(
        []() -> task<> {
            using enum frame_prefix;
            for (const frame_prefix prefix : {u8, u16, u32, u64, varint}) {
                auto [a, b] = duplex();
                const frame_format format{.prefix = prefix};
                co_await exchange_frames(std::move(a), std::move(b), format);
            }
            auto [c, d] = co_await connected();
            const frame_format by_default;
            co_await exchange_frames(std::move(c), std::move(d), by_default);
            auto [e, f] = co_await connected();
            frame_writer borrowing{e};
            frame_reader reading{f};
            const result<> written = co_await borrowing.write_frame("");
            EXPECT_TRUE(written);
            const auto body = co_await reading.read_frame(0);
            EXPECT_TRUE(body);
        }(),
        loop());
}

TEST_P(contract_streams, values_cross_loops) {
    simplenet::run(
        []() -> task<> {
            broadcast<std::string> news(1);
            auto slow = news.subscribe();
            news.send("lost");
            news.send("kept");
            auto heard = co_await slow.receive();
            EXPECT_EQ(heard.error(), errc::queue_full);
            EXPECT_EQ(heard.error().missed, 1U);
            heard = co_await slow.receive();
            EXPECT_EQ(heard, "kept");

            watch<int> level(1);
            auto looking = level.subscribe();
            level.set(2);
            level.set(3);
            const result<> changed = co_await looking.changed();
            EXPECT_TRUE(changed);
            EXPECT_EQ(looking.get(), 3);
        }(),
        loop());
}

INSTANTIATE_TEST_SUITE_P(backends, contract_streams, simplenet::testing::real_backends,
                         simplenet::testing::backend_name);

} // namespace
