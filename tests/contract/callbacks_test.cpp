// The callbacks as the contract spells them, with the headers that a program from muduo includes.

#include <simplenet/callbacks/buffer.hpp>
#include <simplenet/callbacks/client.hpp>
#include <simplenet/callbacks/connection.hpp>
#include <simplenet/callbacks/server.hpp>
#include <simplenet/callbacks/timers.hpp>
#include <simplenet/simplenet.hpp>

#include "support/backend_test.hpp"

#include <any>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace {

using namespace simplenet;
using namespace std::chrono_literals;
using callbacks::buffer;
using callbacks::connection;
using callbacks::connection_ptr;
using callbacks::handlers;

static_assert(std::same_as<connection_ptr, std::shared_ptr<connection>>);
static_assert(std::is_aggregate_v<handlers>);
static_assert(std::constructible_from<decltype(handlers::on_connection),
                                      std::function<void(connection_ptr)>>);
static_assert(std::constructible_from<decltype(handlers::on_message),
                                      std::function<void(connection_ptr, buffer&)>>);
static_assert(std::constructible_from<decltype(handlers::on_write_complete),
                                      std::function<void(connection_ptr)>>);
static_assert(std::constructible_from<decltype(handlers::on_high_water_mark),
                                      std::function<void(connection_ptr, std::size_t)>>);
static_assert(
    std::constructible_from<decltype(handlers::on_idle), std::function<void(connection_ptr)>>);

TEST(contract_callbacks, buffers_have_their_members) {
    buffer bytes;
    EXPECT_EQ(bytes.readable(), 0U);
    bytes.append("text");
    bytes.append(std::string{"\r\n"});
    bytes.append(std::string_view{"rest"});
    bytes.prepend("a ");
    EXPECT_EQ(bytes.readable(), 12U);
    const char* const start = bytes.peek();
    EXPECT_EQ(bytes.find('t'), start + 2);
    EXPECT_EQ(bytes.find_crlf(), start + 6);
    bytes.retrieve(8);
    EXPECT_EQ(bytes.retrieve_all_as_string(), "rest");
    bytes.append_u16(0x0102);
    bytes.append_u32(0x03040506);
    bytes.append_u64(0x0708090a0b0c0d0e);
    EXPECT_EQ(bytes.peek_u16(), 0x0102);
    EXPECT_EQ(bytes.read_u16(), 0x0102);
    EXPECT_EQ(*bytes.peek(), 3);
    EXPECT_EQ(bytes.peek_u32(), 0x03040506U);
    EXPECT_EQ(bytes.read_u32(), 0x03040506U);
    EXPECT_EQ(bytes.peek_u64(), 0x0708090a0b0c0d0eU);
    EXPECT_EQ(bytes.read_u64(), 0x0708090a0b0c0d0eU);
    static_assert(std::same_as<decltype(bytes.read_u64()), std::uint64_t>);
    bytes.shrink();
    buffer moved = std::move(bytes);
    EXPECT_EQ(moved.readable(), 0U);
}

class contract_callbacks_on : public simplenet::testing::own_loops_test {
protected:
    [[nodiscard]] static loop_options loop() { return {.backend = GetParam()}; }
};

// Sleeps between looks: a callback that notified the waiter could still use the flag when the test
// has destroyed it.
void wait_until(const std::atomic<bool>& flag) {
    while (!flag)
        std::this_thread::sleep_for(1ms);
}

/// Every member of a connection; in the order in which they make sense.
void use(const connection_ptr& conn) {
    static_assert(std::same_as<decltype(conn->loop()), event_loop&>);
    static_assert(std::same_as<decltype(conn->context()), std::any&>);
    static_assert(std::convertible_to<decltype(conn->peer()), endpoint>);
    static_assert(std::convertible_to<decltype(conn->local()), endpoint>);
    static_assert(std::same_as<decltype(conn->is_connected()), bool>);
    static_assert(std::convertible_to<decltype(conn->error()), std::error_code>);
    EXPECT_EQ(&conn->loop(), event_loop::current());
    EXPECT_EQ(conn->peer().address(), ip_address::loopback_v4());
    EXPECT_NE(conn->local().port(), 0);
    EXPECT_FALSE(conn->error());
    conn->set_no_delay(true);
    conn->set_high_water_mark(std::size_t{1} << 20U);
    conn->set_limit(std::size_t{16} << 20U);
    conn->context() = 0;
    conn->stop_reading();
    conn->start_reading();
}

TEST_P(contract_callbacks_on, servers_and_clients_echo) {
    auto group = or_throw(event_loop_group::create({.loops = 2, .loop = loop()}));
    std::atomic<bool> up = false;
    std::atomic<bool> down = false;
    std::atomic<bool> written = false;
    handlers echoing{
        .on_connection =
            [&](connection_ptr conn) {
                if (conn->is_connected()) {
                    use(conn);
                } else {
                    down = true;
                }
            },
        .on_message =
            [](const connection_ptr& conn, buffer& input) {
                ++std::any_cast<int&>(conn->context());
                conn->send(input.retrieve_all_as_string());
            },
        .on_write_complete = [&](const connection_ptr&) { written = true; },
        .on_high_water_mark = [](const connection_ptr&, std::size_t) {},
        .on_idle = [](const connection_ptr&) {},
    };
    callbacks::server server{group, endpoint::loopback(0), echoing, {.max_connections = 4}};
    server.start();

    std::atomic<bool> answered = false;
    callbacks::client client{group[0],
                             "127.0.0.1",
                             server.local_endpoint().port(),
                             {.on_connection =
                                  [&](const connection_ptr& conn) {
                                      if (!conn->is_connected()) return;
                                      up = true;
                                      conn->send("one ");
                                  },
                              .on_message =
                                  [&](const connection_ptr& conn, buffer& input) {
                                      if (input.readable() < 14) return;
                                      EXPECT_EQ(input.retrieve_all_as_string(), "one two three.");
                                      answered = true;
                                      conn->shutdown();
                                  }},
                             client_options{.backoff = {.initial = 1h, .maximum = 1h}}};
    client.connect();
    wait_until(up);
    const connection_ptr conn = client.connection();
    ASSERT_NE(conn, nullptr);
    const std::string kept = "two ";
    conn->send(kept);
    std::string given = "three";
    conn->send(std::move(given));
    conn->send(std::string_view{"."});
    wait_until(answered);
    wait_until(written);
    wait_until(down);
    client.disconnect();
    client.stop();
    conn->close();
    static_assert(std::same_as<decltype(server.statistics()), server_statistics>);
    EXPECT_EQ(server.statistics().accepted, 1U);
    static_assert(std::same_as<decltype(server.stop(1s)), void>);
    server.stop(1s);
}

TEST(contract_callbacks, servers_throw_what_listening_reports) {
    auto group = or_throw(event_loop_group::create({.loops = 1}));
    const callbacks::server first{group, endpoint::loopback(0), {}};
    try {
        const callbacks::server second{group, first.local_endpoint(), {}};
        FAIL() << "the address is in use";
    } catch (const std::system_error& thrown) {
        EXPECT_EQ(thrown.code(), std::errc::address_in_use);
    }
}

TEST_P(contract_callbacks_on, timers_run_and_are_cancelled) {
    auto group = or_throw(event_loop_group::create({.loops = 1, .loop = loop()}));
    std::atomic<bool> ran = false;
    std::atomic<int> ticks = 0;
    std::atomic<bool> enough = false;
    static_assert(
        std::same_as<decltype(callbacks::run_after(group[0], 1ms, [] {})), callbacks::timer_id>);
    callbacks::run_after(group[0], 1ms, [&] { ran = true; });
    const callbacks::timer_id never = callbacks::run_after(group[0], 1h, [] { FAIL(); });
    const callbacks::timer_id again = callbacks::run_every(group[0], 1ms, [&] {
        if (++ticks == 3) enough = true;
    });
    wait_until(ran);
    wait_until(enough);
    callbacks::cancel(group[0], never);
    callbacks::cancel(group[0], again);
    EXPECT_FALSE(never == again);
}

INSTANTIATE_TEST_SUITE_P(backends, contract_callbacks_on, simplenet::testing::real_backends,
                         simplenet::testing::backend_name);

} // namespace
