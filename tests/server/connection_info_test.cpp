// What a server tells its handlers about a connection.

#include "support/served_group.hpp"

#include <simplenet/server/tcp_server.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

class connection_info_test : public testing::served_test {
protected:
    static std::uint16_t port_of(const testing::raw_peer& client) {
        sockaddr_in own{};
        socklen_t size = sizeof own;
        testing::checked(::getsockname(client.fd(), reinterpret_cast<sockaddr*>(&own), &size));
        return ntohs(own.sin_port);
    }
};

TEST_P(connection_info_test, a_handler_may_ask_for_the_addresses) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
    std::atomic<std::uint16_t> port = 0;
    std::atomic<std::uint64_t> number = 0;
    EXPECT_TRUE(server.serve([&](tcp_stream, connection_info info) -> task<result<>> {
        EXPECT_EQ(info.local, server.local_endpoint());
        EXPECT_FALSE(info.proxied);
        port = info.peer.port();
        number = info.number;
        co_return result<>{};
    }));

    for (const std::uint64_t expected : {1U, 2U}) {
        auto peer = connect(server.local_endpoint());
        EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
        EXPECT_EQ(port, port_of(peer));
        EXPECT_EQ(number, expected);
    }
}

// getpeername(2) fails then, and whoever is denied by address was let in.
TEST_P(connection_info_test, the_address_of_a_client_that_has_reset_is_known) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
    std::mutex mutex;
    std::multiset<std::uint16_t> served;
    EXPECT_TRUE(server.serve([&](tcp_stream, connection_info info) -> task<> {
        EXPECT_EQ(info.peer.address(), ip_address::loopback_v4());
        EXPECT_EQ(info.local, server.local_endpoint());
        const std::lock_guard locked{mutex};
        served.insert(info.peer.port());
        co_return;
    }));

    std::multiset<std::uint16_t> resets;
    for (int each = 0; each < 200; ++each) { // most before the server looks at them
        auto peer = connect(server.local_endpoint());
        resets.insert(port_of(peer));
        peer.reset();
    }

    EXPECT_TRUE(eventually([&] { return server.statistics().ended == resets.size(); }));
    const std::lock_guard locked{mutex};
    EXPECT_EQ(served, resets);
}

INSTANTIATE_TEST_SUITE_P(backends, connection_info_test,
                         ::testing::Values(backend::epoll, backend::io_uring),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
