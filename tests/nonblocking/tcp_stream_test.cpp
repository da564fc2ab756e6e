#include <simplenet/nonblocking/tcp_stream.hpp>

#include "support/error_of.hpp"
#include "support/flavours.hpp"

#include <vector>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using nonblocking::tcp_stream;

TEST(tcp_stream_test, a_connection_is_established_when_finish_connect_succeeds) {
    auto listener = nonblocking_tcp::listen();
    auto client = or_throw(tcp_stream::connect(nonblocking_tcp::address_of(listener)));
    EXPECT_TRUE(is_close_on_exec(client.native_handle()));
    EXPECT_TRUE(is_nonblocking(client.native_handle()));

    await(client.native_handle(), POLLOUT);

    EXPECT_TRUE(client.finish_connect());
    EXPECT_TRUE(client.finish_connect()) << "called again";
    auto server = accept_one(listener);
    EXPECT_TRUE(client.write_some("hello"));
    EXPECT_EQ(read_text(server, 5), "hello");
}

TEST(tcp_stream_test, finish_connect_reports_refusal_once) {
    auto listener = nonblocking_tcp::listen();
    const endpoint nobody = nonblocking_tcp::address_of(listener);
    listener.close();

    auto client = or_throw(tcp_stream::connect(nobody));
    await(client.native_handle(), POLLOUT);

    EXPECT_EQ(error_of(client.finish_connect()), std::errc::connection_refused);
    EXPECT_EQ(error_of(client.finish_connect()), std::errc::not_connected);
}

// SO_ERROR is 0 until the peer has answered, which must not be mistaken for success.
TEST(tcp_stream_test, finish_connect_would_block_until_the_server_answers) {
    auto listener = nonblocking_tcp::listen({.backlog = 1});
    const endpoint at = nonblocking_tcp::address_of(listener);

    std::vector<tcp_stream> clients;
    std::error_code last;
    while (!last && clients.size() < 16) {
        clients.push_back(or_throw(tcp_stream::connect(at)));
        last = error_of(clients.back().finish_connect());
    }

    EXPECT_EQ(last, std::errc::operation_would_block) << "the backlog is full";
    std::array<char, 1> one;
    auto& client = clients.back();
    EXPECT_EQ(error_of(client.read_some(one)), std::errc::operation_would_block);
    EXPECT_EQ(error_of(client.write_some("x")), std::errc::operation_would_block);
    EXPECT_EQ(error_of(client.remote_endpoint()), std::errc::not_connected);
}

TEST(tcp_stream_test, connect_reports_an_unreachable_address_at_once) {
    const endpoint everybody{or_throw(ip_address::parse("255.255.255.255")), 9};

    EXPECT_EQ(error_of(tcp_stream::connect(everybody)), std::errc::network_unreachable);
}

TEST(tcp_stream_test, finish_connect_of_a_closed_stream_fails) {
    auto [client, server] = make_connection<nonblocking_tcp>();
    client.close();

    EXPECT_EQ(error_of(client.finish_connect()), std::errc::bad_file_descriptor);
}

} // namespace
