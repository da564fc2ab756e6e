// A thousand clients lose their server at the same moment, again and again: they return at
// different moments, no attempt is left over, and when the server stays, all are connected.

#include "support/backend_test.hpp"
#include "support/closed_port.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::all_backends;
using testing::backend_name;

constexpr std::size_t crowd = 1000;

class reconnecting_clients_test : public testing::backend_test {};

TEST_P(reconnecting_clients_test, clients_of_a_server_that_is_down_do_not_return_together) {
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    const testing::closed_port port;
    std::vector<nanoseconds> times; // of all attempts
    run(
        [&]() -> task<> {
            std::deque<tcp_client> clients;
            auto all = [&](task_group& group) -> task<> {
                for (std::size_t each = 0; each < crowd; ++each) {
                    tcp_client& client = clients.emplace_back(
                        "127.0.0.1", port.number(),
                        client_options{.backoff = {.initial = 1s, .maximum = 64s}});
                    client.on_event = [&](const client_event&) {
                        times.push_back(clock.elapsed());
                    };
                    group.spawn(
                        client.run([](tcp_stream&) -> task<result<>> { co_return result<>{}; }));
                }
                co_return;
            };
            EXPECT_EQ(error_of(co_await with_timeout(with_group(all), 200s)),
                      errc::deadline_exceeded);
        },
        60s); // ten thousand attempts, which a simulated kernel takes its time for

    // All begin at 0. In the steady state a client tries every 32 s on average.
    const auto between = [&](nanoseconds from, nanoseconds to) {
        return std::ranges::count_if(times, [=](nanoseconds at) { return at >= from && at < to; });
    };
    EXPECT_GE(between(0s, 1s), 1000);
    EXPECT_LE(between(150s, 200s), 1000 * 50 / 32 * 3 / 2);
    for (int second = 5; second < 200; ++second) {
        const nanoseconds from = std::chrono::seconds{second};
        EXPECT_LE(between(from, from + 1s), second < 100 ? 1000 / 3 : 1000 / 10) << second;
        EXPECT_LE(between(from, from + 10ms), 1000 / 50) << second;
    }
}

// Real time, but nothing depends on its length: the server counts what it does.
TEST_P(reconnecting_clients_test, clients_of_a_server_that_flaps_are_all_served_in_the_end) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0), {.backlog = 4096}));
    const std::uint16_t port = or_throw(listener.local_endpoint()).port();
    run(
        [&]() -> task<> {
            std::size_t accepted = 0;
            bool is_up = false;
            auto serving = spawn([&]() -> task<> {
                auto serve = [&](task_group& group) -> task<> {
                    while (auto stream = co_await listener.accept()) {
                        // The first thousands lose their connection, some of them by a reset.
                        is_up = ++accepted > 3 * crowd;
                        if (!is_up) {
                            if (accepted % 3 == 0) static_cast<void>(stream->set_linger(0s));
                            continue;
                        }
                        group.spawn([](tcp_stream peer) -> task<> {
                            static_cast<void>(co_await async_write_all(peer, "x"));
                            std::array<char, 1> byte;
                            static_cast<void>(co_await peer.read_some(byte));
                        }(*std::move(stream)));
                    }
                };
                static_cast<void>(co_await with_group(serve));
            });

            std::deque<tcp_client> clients;
            std::size_t failures = 0;
            std::size_t served = 0;
            auto session = [&](tcp_stream& stream) -> task<result<>> {
                std::array<char, 1> byte;
                const auto count = co_await stream.read_some(byte);
                if (!count) co_return fail(count);
                ++served;
                co_return result<>{};
            };
            auto all = [&](task_group& group) -> task<> {
                for (std::size_t each = 0; each < crowd; ++each) {
                    tcp_client& client = clients.emplace_back(
                        "127.0.0.1", port,
                        client_options{.backoff = {.initial = 1ms, .maximum = 64ms}});
                    client.on_event = [&](const client_event& event) {
                        if (event.kind != client_event::connected) ++failures;
                    };
                    group.spawn(client.run(session));
                }
                co_return;
            };
            EXPECT_TRUE(co_await with_group(all));
            EXPECT_EQ(served, crowd);
            EXPECT_GE(failures, 3 * crowd);
            serving.request_stop();
            co_await serving;
        },
        60s);
    listener.close();
    run([]() -> task<> { co_await testing::turns(2); });
    EXPECT_EQ(loop().metrics().open_descriptors, 0U);
    EXPECT_EQ(loop().metrics().timers, 0U);
}

INSTANTIATE_TEST_SUITE_P(backends, reconnecting_clients_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
