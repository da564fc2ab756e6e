// Clients that stay connected, as the contract spells them.

#include <simplenet/simplenet.hpp>

#include "support/backend_test.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace simplenet;
using namespace std::chrono_literals;

template <class T>
constexpr bool is_options = std::is_aggregate_v<T> && std::is_trivially_destructible_v<T> &&
                            std::is_trivially_copyable_v<T>;

static_assert(is_options<backoff> && is_options<client_options>);
static_assert(backoff{}.initial == 100ms && backoff{}.maximum == 30s && backoff{}.factor == 2);
static_assert(client_options{}.stable_after == 10s);
static_assert(client_options{}.backoff.initial == 100ms);
static_assert(std::same_as<decltype(client_options::connect), connect_options>);
static_assert(
    std::same_as<decltype(tcp_client::on_event), std::function<void(const client_event&)>>);

class contract_clients : public simplenet::testing::own_loops_test {
protected:
    [[nodiscard]] static loop_options loop() { return {.backend = GetParam()}; }
};

task<result<>> succeed(tcp_stream& stream) {
    EXPECT_GE(stream.native_handle(), 0);
    co_return result<>{};
}

TEST_P(contract_clients, clients_connect_again) {
    simplenet::run(
        []() -> task<> {
            auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
            tcp_client client{"127.0.0.1", or_throw(listener.local_endpoint()).port(),
                              client_options{.backoff = {.initial = 1ms, .maximum = 2ms},
                                             .connect = {},
                                             .stable_after = 1h}};
            std::vector<client_event> events;
            client.on_event = [&events](const client_event& event) { events.push_back(event); };
            int sessions = 0;
            auto session = [&sessions](tcp_stream&) -> task<result<>> {
                if (++sessions == 1) co_return fail(std::errc::connection_reset);
                co_return result<>{};
            };
            const result<> ended = co_await client.run(session);
            EXPECT_TRUE(ended);
            EXPECT_EQ(sessions, 2);
            EXPECT_EQ(events.size(), 3U);
            if (events.size() != 3) co_return;
            EXPECT_EQ(events[0].kind, client_event::kind::connected);
            EXPECT_EQ(events[1].kind, client_event::disconnected);
            EXPECT_EQ(events[1].error, std::errc::connection_reset);
            EXPECT_EQ(events[1].attempt, 1U);
            EXPECT_LE(events[1].next_delay, 2ms);
            EXPECT_EQ(events[2].attempt, 2U);

            const result<> by_function = co_await client.run(succeed);
            EXPECT_TRUE(by_function);
            const std::string text = "captured";
            const auto capturing = [text](tcp_stream& stream) -> task<result<>> {
                or_throw(co_await async_write_all(stream, text));
                co_return result<>{};
            };
            const result<> by_closure = co_await client.run(capturing);
            EXPECT_TRUE(by_closure);
        }(),
        loop());
}

TEST_P(contract_clients, a_stop_ends_a_client) {
    simplenet::run(
        []() -> task<> {
            tcp_client nobody{"127.0.0.1", 1};
            std::stop_source stop;
            bool failed = false;
            nobody.on_event = [&](const client_event& event) {
                failed = event.kind == client_event::kind::connect_failed;
                stop.request_stop();
            };
            const result<> ended = co_await with_stop(stop.get_token(), nobody.run(succeed));
            EXPECT_EQ(ended.error(), std::errc::operation_canceled);
            EXPECT_TRUE(failed);
        }(),
        loop());
}

INSTANTIATE_TEST_SUITE_P(backends, contract_clients, simplenet::testing::real_backends,
                         simplenet::testing::backend_name);

} // namespace
