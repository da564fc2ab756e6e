#include <simplenet/net/local_listener.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/blocking/local_stream.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::turns;

class local_listener_test : public testing::backend_test {};

TEST_P(local_listener_test, a_path_is_removed_only_on_request) {
    const testing::temporary_directory directory;
    const std::string path = directory / "socket";
    const auto at = or_throw(local_endpoint::parse(path));
    auto listener = or_throw(local_listener::bind(at));
    run([&]() -> task<> {
        auto client = co_await async_connect(at);
        EXPECT_TRUE(client);
        auto server = co_await listener.accept();
        EXPECT_TRUE(server);
        if (!client || !server) co_return;
        EXPECT_TRUE(co_await async_write_all(*server, "hello"));
        std::string got(5, '\0');
        EXPECT_TRUE(co_await async_read_exact(*client, got));
        EXPECT_EQ(got, "hello");
    });
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_TRUE(listener.unlink_path());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(error_of(listener.unlink_path()), std::errc::no_such_file_or_directory);
}

TEST_P(local_listener_test, a_path_in_use_is_an_error_unless_it_is_to_be_replaced) {
    const testing::temporary_directory directory;
    const auto at = or_throw(local_endpoint::parse(directory / "socket"));
    auto first = or_throw(local_listener::bind(at));

    EXPECT_EQ(error_of(local_listener::bind(at)), std::errc::address_in_use);
    EXPECT_TRUE(local_listener::bind(at, {.unlink_existing = true}));
}

TEST_P(local_listener_test, bind_reports_why_a_path_cannot_be_used) {
    const testing::temporary_directory directory;
    const auto nowhere = or_throw(local_endpoint::parse(directory / "no/such/place"));
    EXPECT_EQ(error_of(local_listener::bind(nowhere)), std::errc::no_such_file_or_directory);
}

TEST_P(local_listener_test, closing_also_closes_connections_accepted_ahead) {
    auto listener = or_throw(local_listener::bind(local_endpoint{}));
    const auto at = or_throw(listener.local_endpoint());
    std::vector<testing::raw_peer> clients;
    for (int each = 0; each < 20; ++each) {
        auto client = or_throw(blocking::local_stream::connect(at));
        clients.emplace_back(std::move(client).release());
    }
    run([&]() -> task<> {
        EXPECT_TRUE(co_await listener.accept());
        co_await turns(3);
        listener.close();
        co_await listener.closed();
    });
    for (auto& client : clients) {
        const auto end = client.receive_to_the_end();
        EXPECT_TRUE(end == errc::end_of_stream || end == std::errc::connection_reset)
            << end.message();
    }
}

TEST_P(local_listener_test, accept_is_stopped_and_timed_out_without_loss) {
    auto listener = or_throw(local_listener::bind(local_endpoint{}));
    const auto at = or_throw(listener.local_endpoint());
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
        auto accepting =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await listener.accept()), canceled); });
        co_await turns(3);
        accepting.request_stop();
        auto client = co_await async_connect(at);
        EXPECT_TRUE(client);
        co_await accepting;
        EXPECT_TRUE(co_await listener.accept());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, local_listener_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
