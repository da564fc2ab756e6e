#include <simplenet/nonblocking/local_stream.hpp>

#include "support/error_of.hpp"
#include "support/flavours.hpp"

#include <vector>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using nonblocking::local_stream;

TEST(local_stream_test, connect_is_done_when_it_returns) {
    auto listener = nonblocking_local::listen();
    auto client = or_throw(local_stream::connect(nonblocking_local::address_of(listener)));

    EXPECT_TRUE(client.write_some("early"));
    auto server = or_throw(listener.accept());
    EXPECT_EQ(read_text(server, 5), "early");
}

TEST(local_stream_test, connect_would_block_while_the_backlog_is_full) {
    auto listener = nonblocking_local::listen({.backlog = 1});
    const auto at = nonblocking_local::address_of(listener);

    std::vector<local_stream> clients;
    std::error_code last;
    while (!last && clients.size() < 16) {
        auto client = local_stream::connect(at);
        last = error_of(client);
        if (client) clients.push_back(*std::move(client));
    }

    EXPECT_EQ(last, std::errc::operation_would_block);
    EXPECT_TRUE(listener.accept());
    EXPECT_TRUE(local_stream::connect(at)) << "there is room again";
}

TEST(local_stream_test, a_pair_is_connected_and_nonblocking) {
    auto [left, right] = or_throw(local_stream::pair());

    EXPECT_EQ(left.write_some("hello"), 5U);
    EXPECT_EQ(read_text(right, 5), "hello");
    for (const int fd : {left.native_handle(), right.native_handle()}) {
        EXPECT_TRUE(is_close_on_exec(fd));
        EXPECT_TRUE(is_nonblocking(fd));
    }
}

} // namespace
