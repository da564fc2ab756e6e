#include <simplenet/tls/server.hpp>

#include "tls/tls_pair.hpp"

#include "support/served_group.hpp"

#include <simplenet/tls/connect.hpp>

#include <array>
#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::client;
using testing::server_with;

task<> echo(tls::stream<tcp_stream> client) {
    std::array<std::byte, 4096> buffer;
    while (const auto count = co_await client.read_some(buffer)) {
        const auto sent = co_await async_write_all(client, const_buffer{buffer.data(), *count});
        if (!sent) co_return;
    }
}

/// One message there and back; the error of the connection otherwise.
task<std::error_code> ask(endpoint at, tls::context with, std::string text) {
    auto connected = co_await tls::async_connect("localhost", at.port(), with, {.timeout = 10s});
    if (!connected) co_return connected.error();
    const auto sent = co_await async_write_all(*connected, text);
    if (!sent) co_return sent.error().code;
    std::string answer(text.size(), '\0');
    const auto got = co_await async_read_exact(*connected, mutable_buffer{answer});
    if (!got) co_return got.error().code;
    EXPECT_EQ(answer, text);
    const auto closed = co_await connected->async_close(10s);
    co_return closed ? std::error_code{} : closed.error();
}

class tls_server_test : public testing::served_test {
protected:
    static shutdown_report shut_down(tls::server& server, std::chrono::nanoseconds grace) {
        return simplenet::run(server.shutdown(grace), {.backend = GetParam()});
    }
    std::error_code error_of_connecting(std::uint16_t port, const tls::context& with) {
        const auto connecting = [&]() -> task<std::error_code> {
            const auto made =
                co_await tls::async_connect("localhost", port, with, {.timeout = 10s}, &detail);
            co_return made ? std::error_code{} : made.error();
        };
        return simplenet::run(connecting(), {.backend = GetParam()});
    }

    std::string detail; // of error_of_connecting()
};

TEST_P(tls_server_test, serves_many_clients_on_all_loops) {
    auto group = make_group(2);
    auto server = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with()));
    ASSERT_TRUE(server.serve(echo));
    const endpoint at = server.local_endpoint();
    const auto by = client();
    simplenet::run(
        [&]() -> task<> {
            std::vector<task<std::error_code>> all;
            for (int each = 0; each < 50; ++each)
                all.push_back(ask(at, by, "message " + std::to_string(each)));
            for (const std::error_code error : co_await when_all(std::move(all)))
                EXPECT_FALSE(error) << error.message();
        }(),
        {.backend = GetParam()});
    EXPECT_EQ(shut_down(server, 10s).cut, 0U);
    const tls::server_statistics all = server.statistics();
    EXPECT_EQ(all.accepted, 50U);
    EXPECT_EQ(all.failed, 0U);
    EXPECT_EQ(all.handshakes_failed, 0U);
}

// The second one used not to compile.
TEST_P(tls_server_test, a_handler_may_ask_for_the_addresses_or_for_the_handshake) {
    auto group = make_group(1);
    auto addresses = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with()));
    auto handshakes = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with()));
    std::promise<simplenet::connection_info> address;
    std::promise<std::string> name;
    ASSERT_TRUE(addresses.serve(
        [&](tls::stream<tcp_stream> from, simplenet::connection_info info) -> task<> {
            address.set_value(info);
            co_await echo(std::move(from));
        }));
    ASSERT_TRUE(handshakes.serve(
        [&](tls::stream<tcp_stream> from, const tls::connection_info& info) -> task<result<>> {
            co_await echo(std::move(from));
            name.set_value(info.server_name);
            co_return result<>{};
        }));
    const auto by = client();
    for (const tls::server* each : {&addresses, &handshakes}) {
        const auto error =
            simplenet::run(ask(each->local_endpoint(), by, "hello"), {.backend = GetParam()});
        EXPECT_FALSE(error) << error.message();
    }
    EXPECT_EQ(address.get_future().get().local.port(), addresses.local_endpoint().port());
    EXPECT_EQ(name.get_future().get(), "localhost");
}

TEST_P(tls_server_test, a_silent_client_is_gone_after_the_limit) {
    auto group = make_group(1);
    auto server = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with(),
                                               {.handshake_timeout = 50ms}));
    ASSERT_TRUE(server.serve(echo));
    auto silent = connect(server.local_endpoint(), 100);
    EXPECT_TRUE(eventually([&] { return server.statistics().handshakes_failed == 100; }));
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 0; }));
}

TEST_P(tls_server_test, a_client_that_does_not_speak_tls_is_refused_and_counted) {
    auto group = make_group(1);
    auto server = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with()));
    ASSERT_TRUE(server.serve(echo));
    auto plain = connect(server.local_endpoint());
    plain.send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return server.statistics().handshakes_failed == 1; }));
}

TEST_P(tls_server_test, silent_clients_do_not_keep_others_from_being_served) {
    auto group = make_group(1);
    auto server = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with(),
                                               {.handshake_steps_per_turn = 1}));
    ASSERT_TRUE(server.serve(echo));
    auto silent = connect(server.local_endpoint(), 100);
    for (auto& each : silent)
        each.send("\x16\x03\x01"); // and no more
    const auto error =
        simplenet::run(ask(server.local_endpoint(), client(), "hello"), {.backend = GetParam()});
    EXPECT_FALSE(error) << error.message();
    EXPECT_EQ(shut_down(server, 0s).cut, 100U);
}

TEST_P(tls_server_test, silent_clients_end_when_the_server_is_full) {
    auto group = make_group(1);
    auto server = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with(),
                                               {.server = {.max_connections = 2}}));
    ASSERT_TRUE(server.serve(echo));
    auto silent = connect(server.local_endpoint(), 2);
    const auto error =
        simplenet::run(ask(server.local_endpoint(), client(), "hello"), {.backend = GetParam()});
    EXPECT_FALSE(error) << error.message();
    EXPECT_EQ(silent.front().receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(server.statistics().handshakes_failed, 0U);
}

// They used to have the whole time of a handshake.
TEST_P(tls_server_test, handshakes_that_do_not_go_on_end_when_the_server_is_full) {
    auto group = make_group(1);
    auto server = or_throw(tls::server::listen(
        group, endpoint::loopback(0), server_with(),
        {.server = {.max_connections = 2}, .handshake_timeout = std::chrono::hours{1}}));
    ASSERT_TRUE(server.serve(echo));
    auto silent = connect(server.local_endpoint(), 2);
    for (auto& each : silent)
        each.send("\x16\x03\x01"); // and no more

    const auto error =
        simplenet::run(ask(server.local_endpoint(), client(), "hello"), {.backend = GetParam()});

    EXPECT_FALSE(error) << error.message();
    EXPECT_EQ(server.statistics().handshakes_failed, 0U);
}

TEST_P(tls_server_test, a_failed_handshake_is_told_with_its_reason) {
    static std::promise<tls::handshake_failure> told;
    told = {};
    auto group = make_group(1);
    auto server =
        or_throw(tls::server::listen(group, endpoint::loopback(0), server_with(),
                                     {.on_handshake_failed = [](const tls::handshake_failure& each,
                                                                void*) { told.set_value(each); }}));
    ASSERT_TRUE(server.serve(echo));
    auto plain = connect(server.local_endpoint());
    plain.send("GET / HTTP/1.1\r\n\r\n");
    const tls::handshake_failure failure = told.get_future().get();
    EXPECT_EQ(failure.error, tls::errc::not_tls);
    EXPECT_EQ(failure.detail, "http request");
    EXPECT_EQ(failure.connection.peer.address(), endpoint::loopback(0).address());
}

TEST_P(tls_server_test, a_silent_client_does_not_hold_up_the_shutdown) {
    auto group = make_group(1);
    auto server = or_throw(tls::server::listen(group, endpoint::loopback(0), server_with()));
    ASSERT_TRUE(server.serve(echo));
    auto silent = connect(server.local_endpoint(), 10);
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 10; }));
    EXPECT_EQ(shut_down(server, 1h).cut, 0U);
    EXPECT_EQ(server.statistics().handshakes_failed, 0U);
}

TEST_P(tls_server_test, connecting_tells_why_the_handshake_failed) {
    auto group = make_group(1);
    auto server =
        or_throw(tls::server::listen(group, endpoint::loopback(0), server_with("expired")));
    ASSERT_TRUE(server.serve(echo));
    const auto at = server.local_endpoint().port();
    EXPECT_EQ(error_of_connecting(at, client()), tls::errc::certificate_expired);
    EXPECT_EQ(detail, "certificate has expired");

    // It used to be left as it was.
    EXPECT_EQ(error_of_connecting(at, server_with()), tls::errc::bad_configuration);
    EXPECT_EQ(detail, "async_connect() with a server's context");
    EXPECT_EQ(shut_down(server, 0s).cut, 0U);
    EXPECT_EQ(error_of_connecting(at, client()), std::errc::connection_refused);
    EXPECT_EQ(detail, "");
}

TEST_P(tls_server_test, run_server_serves_until_it_is_stopped) {
    std::stop_source stop;
    std::promise<endpoint> listening;
    run_server_options with;
    with.group = {.loops = 2, .loop = {.backend = GetParam()}};
    with.on_listening = [](tcp_server& server, void* context) {
        static_cast<std::promise<endpoint>*>(context)->set_value(server.local_endpoint());
    };
    with.context = &listening;
    std::thread asking{[&] {
        const auto error = simplenet::run(ask(listening.get_future().get(), client(), "hello"),
                                          {.backend = GetParam()});
        EXPECT_FALSE(error) << error.message();
        stop.request_stop();
    }};
    const auto report =
        tls::run_server(endpoint::loopback(0), server_with(), echo, with, stop.get_token());
    asking.join();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->cut, 0U);
}

TEST_P(tls_server_test, a_context_of_the_other_side_is_a_bad_configuration) {
    auto group = make_group(1);
    const auto listening = tls::server::listen(group, endpoint::loopback(0), client());
    ASSERT_FALSE(listening);
    EXPECT_EQ(listening.error(), tls::errc::bad_configuration);
    const auto ran = tls::run_server(endpoint::loopback(0), client(), echo);
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error(), tls::errc::bad_configuration);
    const auto error =
        simplenet::run(ask(endpoint::loopback(9), server_with(), "hello"), {.backend = GetParam()});
    EXPECT_EQ(error, tls::errc::bad_configuration);
}

INSTANTIATE_TEST_SUITE_P(backends, tls_server_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
