#include "http/websocket/websocket_server_test.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/counted_allocations.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class websocket_memory_test : public backend_test {};

/// Sends `text` and reads it back.
task<> round_trip(websocket& from, websocket& to, std::string_view text) {
    const auto written = co_await from.write_message(text);
    EXPECT_TRUE(written);
    const auto read = co_await to.read_message();
    EXPECT_TRUE(read);
}

TEST_P(websocket_memory_test, a_message_costs_no_allocation_but_its_string) {
    if (!detail::recycles_frames) GTEST_SKIP() << "frames are not recycled under ASan";
    run([]() -> task<> {
        auto [first, second] = connected_pair();
        auto server = make_websocket(std::move(first), websocket_role::server);
        auto client = make_websocket(std::move(second), websocket_role::client);
        const std::string longer(200, 'x');
        for (int count = 0; count < 10; ++count) {
            co_await round_trip(server, client, longer);
            co_await round_trip(client, server, longer);
        }

        const std::size_t before = allocations;
        for (int count = 0; count < 100; ++count) {
            co_await round_trip(server, client, "short");
            co_await round_trip(client, server, "short");
        }
        EXPECT_EQ(allocations, before);
        for (int count = 0; count < 100; ++count) {
            co_await round_trip(server, client, longer);
            co_await round_trip(client, server, longer);
        }
        EXPECT_EQ(allocations, before + 200);
    });
}

TEST_P(websocket_memory_test, a_size_that_is_only_announced_costs_no_memory) {
    run([]() -> task<> {
        auto ends = memory_ends();
        std::string head = frame(0x82, std::string(65536, 'x')).substr(0, 14);
        head[2] = '\x7f'; // nearly 2^63 bytes
        co_await ends.send(head + "abc");
        largest_allocation = 0;

        const auto none = std::string::npos / 2;
        const auto read = co_await with_timeout(ends.ours.read_message(none), 1us);

        EXPECT_EQ(read.error(), errc::deadline_exceeded);
        EXPECT_LE(largest_allocation, 4096U);
    });
}

TEST_P(websocket_memory_test, pings_whose_answers_are_not_read_cost_no_memory) {
    run([]() -> task<> {
        auto ends = memory_ends({}, websocket_role::server, 1024);
        auto reader = spawn(ends.ours.read_message());
        const std::string ping = ping_frame(std::string(125, 'p'));
        for (int count = 0; count < 100; ++count)
            co_await ends.send(ping);
        const std::size_t before = live_bytes;
        for (int count = 0; count < 10'000; ++count)
            co_await ends.send(ping);

        EXPECT_LE(live_bytes, before + 4096);
        reader.request_stop();
        static_cast<void>(co_await reader);
    });
}

TEST_P(websocket_memory_test, an_idle_one_holds_no_buffers) {
    run([]() -> task<> {
        std::vector<websocket_ends<tcp_stream>> all;
        std::vector<join_handle<result<websocket::message>>> readers;
        constexpr std::size_t many = 100;
        all.reserve(many);
        readers.reserve(many);
        const std::size_t before = live_bytes;
        for (std::size_t count = 0; count < many; ++count) {
            all.push_back(tcp_websocket_ends());
            readers.push_back(spawn(all.back().ours.read_message()));
        }
        co_await turns(3);
        for (auto& each : all)
            co_await each.send(ping_frame("are you there?"));
        for (auto& each : all)
            EXPECT_EQ(co_await each.next(), seen_frame(0x8a, "are you there?"));
        co_await turns(3);

        // Both ends of the connection, the websocket and a read that waits.
        EXPECT_LE((live_bytes - before) / many, 4096U);
        RecordProperty("bytes", static_cast<int>((live_bytes - before) / many));
        for (auto& each : readers)
            each.request_stop();
        for (auto& each : readers)
            static_cast<void>(co_await each);
    });
}

class websocket_server_memory_test : public websocket_server_test {
protected:
    /// Of the heap, for each of many clients that wait.
    std::size_t bytes_of_each(std::string_view target) {
        constexpr std::size_t many = 50;
        open_many(many, target); // fills what the loop keeps for later
        const std::size_t before = live_bytes;
        open_many(many, target);
        return (live_bytes - before) / many;
    }

private:
    void open_many(std::size_t count, std::string_view target) {
        for (; count != 0; --count) {
            clients_.push_back(open(target));
            clients_.back().send(ping_frame("?"));
            EXPECT_EQ(next(clients_.back()), seen_frame(0x8a, "?"));
        }
    }

    std::deque<raw_peer> clients_; // stay: their memory would be used again
};

TEST_P(websocket_server_memory_test, an_idle_one_keeps_its_request_only_if_the_handler_asks) {
    http::router routes;
    routes.websocket("/plain", echo_messages);
    routes.websocket("/asks", [](http::request&, http::websocket& peer) -> task<> {
        co_await echo_messages(peer);
    });
    serve(std::move(routes));

    const std::size_t plain = bytes_of_each("/plain");
    const std::size_t asks = bytes_of_each("/asks");

    RecordProperty("plain", static_cast<int>(plain));
    RecordProperty("asks", static_cast<int>(asks));
    EXPECT_LE(plain, 6U * 1024);
    EXPECT_GE(asks, plain + 4096);
    EXPECT_LE(asks, plain + 7U * 1024);
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_memory_test, real_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, websocket_server_memory_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
