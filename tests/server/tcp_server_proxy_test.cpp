// Servers behind a proxy that speaks the PROXY protocol.

#include "support/proxy_headers.hpp"
#include "support/served_group.hpp"

#include <simplenet/server/tcp_server.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

class tcp_server_proxy_test : public testing::served_test {
protected:
    static server_options behind_proxy() { return {.proxy = proxy_protocol::required}; }
};

/// Sends what it knows of the connection, and then everything back.
task<> tell_and_echo(tcp_stream stream, connection_info info) {
    std::string text = info.peer.to_string() + ' ' + info.local.to_string();
    text += info.proxied ? " proxied\n" : " direct\n";
    const auto told = co_await async_write_all(stream, text);
    if (told) co_await testing::echo(std::move(stream));
}

std::string line_from(testing::raw_peer& peer) {
    std::string line;
    while (line.empty() || line.back() != '\n') {
        const std::string next = peer.receive(1);
        if (next.empty()) break;
        line += next;
    }
    return line;
}

TEST_P(tcp_server_proxy_test, a_handler_sees_the_addresses_of_the_client) {
    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), behind_proxy()));
    EXPECT_TRUE(server.serve(tell_and_echo));
    const std::vector<std::string> headers{
        "PROXY TCP4 192.0.2.1 198.51.100.2 1000 443\r\n",
        testing::proxy_v2(0x21, 0x11, testing::proxy_v4_block),
    };

    for (const std::string& header : headers) {
        auto peer = connect(server.local_endpoint());
        peer.send(header + "payload");
        EXPECT_EQ(line_from(peer), "192.0.2.1:1000 198.51.100.2:443 proxied\n");
        EXPECT_EQ(peer.receive(7), "payload");
    }
}

TEST_P(tcp_server_proxy_test, a_header_may_arrive_byte_by_byte) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), behind_proxy()));
    EXPECT_TRUE(server.serve(tell_and_echo));
    auto peer = connect(server.local_endpoint());
    const int on = 1;
    ::setsockopt(peer.fd(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);

    for (const char each : testing::proxy_v2(0x21, 0x11, testing::proxy_v4_block))
        peer.send({&each, 1});

    EXPECT_EQ(line_from(peer), "192.0.2.1:1000 198.51.100.2:443 proxied\n");
}

TEST_P(tcp_server_proxy_test, a_connection_of_the_proxy_itself_is_direct) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), behind_proxy()));
    EXPECT_TRUE(server.serve(tell_and_echo));
    auto peer = connect(server.local_endpoint());

    peer.send(testing::proxy_v2(0x20, 0x00, ""));

    EXPECT_TRUE(line_from(peer).ends_with(" direct\n"));
}

TEST_P(tcp_server_proxy_test, a_handler_need_not_ask_for_the_addresses) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), behind_proxy()));
    EXPECT_TRUE(server.serve([](tcp_stream stream) { return testing::echo(std::move(stream)); }));
    auto peer = connect(server.local_endpoint());

    peer.send("PROXY TCP4 192.0.2.1 198.51.100.2 1000 443\r\nhello");

    EXPECT_EQ(peer.receive(5), "hello");
}

// getpeername(2) fails then, so it was refused as no known proxy.
TEST_P(tcp_server_proxy_test, a_proxy_that_has_reset_is_known) {
    auto group = make_group(1);
    auto options = behind_proxy();
    const std::array<std::string_view, 1> known{"127.0.0.1"};
    options.proxy_sources = known;
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), options));
    std::atomic<int> introduced = 0;
    EXPECT_TRUE(server.serve([&](tcp_stream, connection_info info) -> task<> {
        EXPECT_EQ(info.peer.to_string(), "192.0.2.1:1000");
        ++introduced;
        co_return;
    }));
    constexpr int resets = 100; // most before the server looks at them

    for (int each = 0; each < resets; ++each) {
        auto peer = connect(server.local_endpoint());
        peer.send("PROXY TCP4 192.0.2.1 198.51.100.2 1000 443\r\n");
        peer.reset();
    }

    EXPECT_TRUE(eventually([&] {
        const auto all = server.statistics();
        return all.ended + all.refused == resets;
    }));
    EXPECT_EQ(introduced, resets);
}

TEST_P(tcp_server_proxy_test, what_is_no_header_is_reset_and_counted) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), behind_proxy()));
    EXPECT_TRUE(server.serve(tell_and_echo));
    const std::vector<std::string_view> others{
        "GET / HTTP/1.1\r\n\r\n"sv, "PROXY TCP4 1.2.3.4\r\n"sv, "\x16\x03\x01\x02\x00"sv};

    for (const std::string_view text : others) {
        auto peer = connect(server.local_endpoint());
        peer.send(text);
        EXPECT_EQ(peer.receive_to_the_end(), std::errc::connection_reset) << text;
    }

    EXPECT_TRUE(eventually([&] { return server.statistics().refused == others.size(); }));
    EXPECT_EQ(server.statistics().ended, 0U);
    EXPECT_EQ(server.statistics().open, 0U);
}

TEST_P(tcp_server_proxy_test, a_silent_peer_is_reset_after_the_limit) {
    auto group = make_group(1);
    auto options = behind_proxy();
    options.proxy_timeout = 5ms;
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), options));
    EXPECT_TRUE(server.serve(tell_and_echo));

    auto silent = connect(server.local_endpoint());
    auto halfway = connect(server.local_endpoint());
    halfway.send("PROXY TC");

    EXPECT_EQ(silent.receive_to_the_end(), std::errc::connection_reset);
    EXPECT_EQ(halfway.receive_to_the_end(), std::errc::connection_reset);
}

TEST_P(tcp_server_proxy_test, a_header_cut_off_at_each_byte_is_refused) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), behind_proxy()));
    EXPECT_TRUE(server.serve(tell_and_echo));
    const std::string header = testing::proxy_v2(0x21, 0x11, testing::proxy_v4_block);

    for (std::size_t size = 0; size < header.size(); ++size) {
        auto peer = connect(server.local_endpoint());
        peer.send(std::string_view{header}.substr(0, size));
        peer.shutdown_write();
        EXPECT_EQ(peer.receive_to_the_end(), std::errc::connection_reset) << size;
    }

    EXPECT_TRUE(eventually([&] { return server.statistics().refused == header.size(); }));
}

TEST_P(tcp_server_proxy_test, only_the_sources_may_speak_it) {
    auto group = make_group(1);
    const std::string header = testing::proxy_v2(0x21, 0x11, testing::proxy_v4_block);
    for (const bool allowed : {true, false}) {
        std::array sources{allowed ? "127.0.0.0/8"sv : "192.0.2.0/24"sv};
        auto options = behind_proxy();
        options.proxy_sources = sources;
        auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), options));
        sources[0] = "no address"; // they have been copied
        EXPECT_TRUE(server.serve(tell_and_echo));
        if (allowed) {
            auto peer = connect(server.local_endpoint());
            peer.send(header);
            EXPECT_TRUE(line_from(peer).ends_with("proxied\n"));
        } else {
            EXPECT_EQ(end_of_refused(server.local_endpoint()), std::errc::connection_reset);
        }
    }
}

TEST_P(tcp_server_proxy_test, sources_that_are_no_addresses_are_invalid) {
    auto group = make_group(1);
    const std::array sources{"127.0.0.1/33"sv};
    auto options = behind_proxy();
    options.proxy_sources = sources;
    EXPECT_EQ(error_of(tcp_server::listen(group, endpoint::loopback(0), options)),
              std::errc::invalid_argument);
}

TEST_P(tcp_server_proxy_test, a_shutdown_cuts_silent_peers_and_refuses_none) {
    auto group = make_group(1);
    auto options = behind_proxy();
    options.proxy_timeout = 1h;
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), options));
    EXPECT_TRUE(server.serve(tell_and_echo));
    const auto peers = connect(server.local_endpoint(), 3);
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 3; }));

    EXPECT_EQ(shut_down(server, 1ms).cut, 3U);
    EXPECT_EQ(server.statistics().refused, 0U);
    EXPECT_EQ(server.statistics().ended, 3U);
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_server_proxy_test,
                         ::testing::Values(backend::epoll, backend::io_uring),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
