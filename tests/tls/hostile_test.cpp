// Connections that are cut anywhere, peers that say too much, and buffers that are too small.

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/errc.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using testing::client;
using testing::memory_stream;
using testing::placed_bytes;
using testing::send_and_end;
using testing::server_with;

class tls_hostile_test : public testing::backend_test {};

// --- cuts ----------------------------------------------------------------------------------------

enum class cut_by : std::uint8_t { end, reset };

/// Copies the first `most` bytes, and then ends both directions.
template <class S>
task<> copy_first(S& from, S& to, std::size_t most, cut_by how) {
    std::array<std::byte, 4096> buffer{};
    while (most != 0) {
        const auto into = std::span{buffer}.first(std::min(most, buffer.size()));
        const auto count = co_await from.read_some(into);
        if (!count) break;
        const auto sent = co_await async_write_all(to, const_buffer{buffer.data(), *count});
        if (!sent) break;
        most -= *count;
    }
    if constexpr (requires { to.set_linger(std::chrono::seconds{0}); }) {
        if (how == cut_by::reset) static_cast<void>(to.set_linger(std::chrono::seconds{0}));
    }
    from.close();
    to.close();
}

/// Expects a typed failure of the handshake; if it is complete before the cut, goes without a word.
template <class S>
task<> expect_cut(tls::stream<S>& end, bool& was_ready) {
    const auto made = co_await end.handshake();
    was_ready = made.has_value();
    if (made) {
        end.transport().close();
        co_return;
    }
    const std::error_code why = made.error();
    EXPECT_TRUE(why == tls::errc::truncated || why == std::errc::connection_reset ||
                why == std::errc::broken_pipe || why == std::errc::not_connected)
        << why.message();
    end.close();
}

/// Cuts what `from_client` or the server sends after `most` bytes. False: the handshake of the end
/// that is cut off was complete before.
template <class S, class Connect>
task<bool> cut_one(Connect connect, bool from_client, std::size_t most, cut_by how,
                   const tls::context& server, const tls::context& client) {
    auto [client_end, to_client] = connect();
    auto [server_end, to_server] = connect();
    tls::stream<S> at_client{std::move(client_end), client, {.server_name = "localhost"}};
    tls::stream<S> at_server{std::move(server_end), server};
    constexpr std::size_t all = std::size_t{1} << 20U;
    bool client_ready = false;
    bool server_ready = false;
    co_await when_all(expect_cut(at_client, client_ready), expect_cut(at_server, server_ready),
                      copy_first(to_client, to_server, from_client ? most : all, how),
                      copy_first(to_server, to_client, from_client ? all : most, how));
    co_return !(from_client ? server_ready : client_ready);
}

tls::context server_without_tickets() {
    return server_with("server",
                       [](tls::server_config& config) { config.session_tickets = false; });
}

TEST_P(tls_hostile_test, a_handshake_that_ends_at_any_byte_is_truncated) {
    const auto server = server_without_tickets();
    const auto by = client();
    const std::size_t step = testing::short_or_full<std::size_t>(17, 1);
    for (const bool from_client : {true, false}) {
        std::size_t cuts = 0;
        bool goes_on = true;
        for (std::size_t most = 0; goes_on; most += step) {
            still_alive();
            run([&]() -> task<> {
                auto connect = [] { return duplex(); };
                goes_on = co_await cut_one<duplex_stream>(connect, from_client, most, cut_by::end,
                                                          server, by);
            });
            ++cuts;
            ASSERT_LT(most, 10'000U);
        }
        EXPECT_GT(cuts, 10U);
    }
}

TEST_P(tls_hostile_test, a_handshake_that_is_reset_at_any_byte_fails) {
    const auto server = server_without_tickets();
    const auto by = client();
    const std::size_t step = testing::short_or_full<std::size_t>(97, 1);
    for (const bool from_client : {true, false}) {
        bool goes_on = true;
        for (std::size_t most = 0; goes_on; most += step) {
            still_alive();
            run([&]() -> task<> {
                auto connect = [] {
                    auto [ours, theirs] = testing::tcp_ends();
                    return std::pair{testing::make_tcp_stream(std::move(ours)),
                                     testing::make_tcp_stream(std::move(theirs))};
                };
                goes_on = co_await cut_one<tcp_stream>(connect, from_client, most, cut_by::reset,
                                                       server, by);
            });
            ASSERT_LT(most, 10'000U);
        }
    }
}

/// Copies at most `left` bytes, which may change meanwhile, and then resets both directions.
task<> copy_until_reset(tcp_stream& from, tcp_stream& to, std::size_t& left) {
    std::array<std::byte, 4096> buffer{};
    for (;;) {
        const auto count = co_await from.read_some(buffer);
        if (!count) break;
        const std::size_t part = std::min(left, *count);
        const auto sent = co_await async_write_all(to, const_buffer{buffer.data(), part});
        left -= part;
        if (left == 0 || !sent) break;
    }
    for (tcp_stream* const each : {&from, &to}) {
        if (left == 0) static_cast<void>(each->set_linger(std::chrono::seconds{0}));
        each->close();
    }
}

struct cut_stream {
    std::string text;
    std::error_code end;
    std::size_t passed = 0;
};

/// One side sends three records and close_notify, of which `most` bytes arrive before a reset.
task<cut_stream> reset_after(std::size_t most, bool from_client, const tls::context& server,
                             const tls::context& client) {
    const auto connect = [] {
        auto [one, other] = testing::tcp_ends();
        return std::pair{testing::make_tcp_stream(std::move(one)),
                         testing::make_tcp_stream(std::move(other))};
    };
    auto [client_end, to_client] = connect();
    auto [server_end, to_server] = connect();
    tls::stream<tcp_stream> at_client{std::move(client_end), client, {.server_name = "localhost"}};
    tls::stream<tcp_stream> at_server{std::move(server_end), server};
    for (tcp_stream* const each :
         {&at_client.transport(), &at_server.transport(), &to_client, &to_server})
        EXPECT_TRUE(each->set_no_delay(true));
    constexpr std::size_t all = std::size_t{1} << 20U;
    std::size_t forth = all;
    std::size_t back = all;
    cut_stream got;
    auto talk = [&]() -> task<> {
        const auto [one, other] = co_await when_all(at_client.handshake(), at_server.handshake());
        EXPECT_TRUE(one && other);
        auto& sender = from_client ? at_client : at_server;
        auto& receiver = from_client ? at_server : at_client;
        std::size_t& left = from_client ? forth : back;
        left = most;
        // The reset may meet any of them.
        for (const std::string_view word : {"one ", "two ", "three"})
            static_cast<void>(co_await sender.write_some(word));
        static_cast<void>(co_await sender.shutdown_write());
        got.text = co_await testing::read_all(receiver, got.end);
        got.passed = most - left;
        for (auto* const each : {&at_client, &at_server})
            each->close();
    };
    auto talking = talk();
    co_await when_all(std::move(talking), copy_until_reset(to_client, to_server, forth),
                      copy_until_reset(to_server, to_client, back));
    co_return got;
}

TEST_P(tls_hostile_test, a_stream_that_is_reset_at_any_byte_has_no_end) {
    const auto server = server_without_tickets();
    const auto by = client();
    const std::size_t step = testing::short_or_full<std::size_t>(7, 1);
    for (const bool from_client : {true, false}) {
        const auto reset_at = [&](std::size_t most) {
            still_alive();
            cut_stream got;
            run([&]() -> task<> { got = co_await reset_after(most, from_client, server, by); });
            return got;
        };
        const cut_stream undisturbed = reset_at(std::size_t{1} << 20U);
        EXPECT_EQ(undisturbed.text, "one two three");
        EXPECT_EQ(undisturbed.end, errc::end_of_stream);
        const std::size_t whole = undisturbed.passed;
        for (std::size_t most = 0; most < whole; most += step) {
            const cut_stream got = reset_at(most);
            EXPECT_TRUE(undisturbed.text.starts_with(got.text)) << got.text;
            EXPECT_EQ(got.end, std::errc::connection_reset) << most << ": " << got.end.message();
        }
        EXPECT_GT(whole, 80U);
    }
}

// --- too much ------------------------------------------------------------------------------------

TEST_P(tls_hostile_test, a_hello_that_is_too_long_is_refused_before_it_is_complete) {
    run([&]() -> task<> {
        auto [left, right] = duplex(std::size_t{64} * 1024);
        memory_stream server{std::move(left), server_with()};
        // A ClientHello of 16 MiB in records of 16 KiB.
        auto flood = [](duplex_stream to, std::size_t& sent) -> task<> {
            std::string record(5 + 16'384, '\0');
            record.replace(0, 9, std::string_view{"\x16\x03\x01\x40\x00\x01\xff\xff\xff", 9});
            for (;;) {
                const auto count = co_await async_write_all(to, record);
                if (!count) co_return;
                sent += *count;
                record.replace(5, 4, std::string(4, '\0'));
            }
        };
        std::size_t sent = 0;
        auto flooding = flood(std::move(right), sent);
        auto failing = [](memory_stream& end) -> task<std::error_code> {
            const auto made = co_await end.handshake();
            end.close();
            co_return made ? std::error_code{} : made.error();
        };
        const std::error_code why =
            std::get<0>(co_await when_all(failing(server), std::move(flooding)));
        EXPECT_EQ(why, std::errc::protocol_error) << why.message();
        EXPECT_LT(sent, 1'000'000U);
    });
}

// The client used to wait for more for ever.
TEST_P(tls_hostile_test, warnings_between_messages_of_a_handshake_are_a_flood_too) {
    run([&]() -> task<> {
        auto [left, right] = duplex(std::size_t{64} * 1024);
        memory_stream end{std::move(left), client(), {.server_name = "localhost"}};
        // A client in a handshake ignores a HelloRequest. OpenSSL takes four warnings in a row.
        std::string records;
        for (int each = 0; each < 20; ++each) {
            records += std::string_view{"\x16\x03\x03\x00\x04\x00\x00\x00\x00", 9};
            for (int warning = 0; warning < 4; ++warning)
                records += std::string_view{"\x15\x03\x03\x00\x02\x01\x5a", 7};
        }
        EXPECT_TRUE(co_await send_and_end(right, records));
        EXPECT_EQ((co_await end.handshake()).error(), tls::errc::record_invalid);
        EXPECT_EQ(end.error_detail(), "the peer sends many messages without data");
    });
}

TEST_P(tls_hostile_test, a_peer_that_never_reads_holds_up_no_close) {
    run([&]() -> task<> {
        auto ends = testing::connected(server_with(), client(), {.server_name = "localhost"}, 200);
        const auto errors = co_await testing::shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        const std::string text(100'000, 'x');
        const auto count =
            co_await with_timeout(ends.server.write_some(text), std::chrono::milliseconds{1});
        EXPECT_GT(count.value_or(0), 0U);
        EXPECT_EQ(ends.server.try_write_some("x").error(), std::errc::operation_would_block);
        const auto closed = co_await ends.server.async_close(std::chrono::milliseconds{1});
        EXPECT_EQ(closed.error(), errc::deadline_exceeded);
        EXPECT_EQ((co_await ends.server.write_some("x")).error(), std::errc::bad_file_descriptor);
    });
}

// --- small buffers -------------------------------------------------------------------------------

task<> send_placed(tls::stream<tcp_stream>& to, std::uint64_t seed, std::uint64_t size) {
    const placed_bytes content{seed};
    for (std::uint64_t at = 0; at < size;) {
        const std::size_t most =
            static_cast<std::size_t>(std::min<std::uint64_t>(50'000, size - at));
        const auto piece = content.piece(at, most);
        const auto count = co_await to.write_some(const_buffer{piece});
        EXPECT_TRUE(count);
        if (!count) co_return;
        at += *count;
    }
    EXPECT_TRUE(co_await to.shutdown_write());
}
task<> receive_placed(tls::stream<tcp_stream>& from, std::uint64_t seed, std::uint64_t size) {
    const placed_bytes content{seed};
    std::vector<std::byte> buffer(64 * 1024);
    std::uint64_t at = 0;
    for (;;) {
        const auto count = co_await from.read_some(buffer);
        if (!count) {
            EXPECT_EQ(count.error(), errc::end_of_stream);
            break;
        }
        const auto mistake = content.mistake(at, std::span{buffer}.first(*count));
        EXPECT_FALSE(mistake) << *mistake;
        at += *count;
    }
    EXPECT_EQ(at, size);
}

TEST_P(tls_hostile_test, both_directions_at_once_with_the_smallest_send_buffers) {
    const auto size = testing::short_or_full<std::uint64_t>(3 << 20U, std::uint64_t{1} << 30U);
    run(
        [&]() -> task<> {
            auto [one, other] = testing::tcp_ends();
            const int bytes = 2048;
            for (const int fd : {one.get(), other.get()})
                testing::checked(::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes));
            tls::stream<tcp_stream> server{testing::make_tcp_stream(std::move(one)), server_with()};
            tls::stream<tcp_stream> peer{
                testing::make_tcp_stream(std::move(other)), client(), {.server_name = "localhost"}};
            co_await when_all(send_placed(server, 1, size), receive_placed(peer, 1, size),
                              send_placed(peer, 2, size), receive_placed(server, 2, size));
        },
        testing::short_or_full(std::chrono::seconds{30}, std::chrono::seconds{3000}));
}

INSTANTIATE_TEST_SUITE_P(backends, tls_hostile_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
