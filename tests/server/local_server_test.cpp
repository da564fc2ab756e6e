#include <simplenet/server/local_server.hpp>

#include "support/served_group.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/blocking/local_stream.hpp>

#include <array>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;

class local_server_test : public testing::served_test {
protected:
    [[nodiscard]] local_endpoint at() const {
        return or_throw(local_endpoint::parse(directory_ / "server"));
    }
    [[nodiscard]] bool exists() const { return std::filesystem::exists(directory_ / "server"); }
    [[nodiscard]] static testing::raw_peer connect(const local_endpoint& to) {
        return testing::raw_peer{
            std::move(or_throw(blocking::local_stream::connect(to))).release()};
    }

private:
    testing::temporary_directory directory_;
};

task<> echo_locally(local_stream stream) {
    std::array<std::byte, 64> buffer;
    while (auto count = co_await stream.read_some(buffer)) {
        const auto sent = co_await async_write_all(stream, const_buffer{buffer.data(), *count});
        if (!sent) co_return;
    }
}

TEST_P(local_server_test, serves_on_every_loop) {
    auto group = make_group(3);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    auto server = or_throw(local_server::listen(group, at()));
    EXPECT_EQ(server.local_endpoint(), at());
    EXPECT_TRUE(server.serve([&](local_stream stream) -> task<> {
        {
            const std::lock_guard locked{mutex};
            threads.insert(std::this_thread::get_id());
        }
        co_await echo_locally(std::move(stream));
    }));

    // More than three if the machine delays a loop, which then gives its connection back.
    std::vector<testing::raw_peer> peers;
    EXPECT_TRUE(eventually([&] {
        peers.push_back(connect(at()));
        peers.back().send("hello");
        EXPECT_EQ(peers.back().receive(5), "hello");
        const std::lock_guard locked{mutex};
        return threads.size() == 3;
    }));
}

TEST_P(local_server_test, a_handler_may_ask_who_connected) {
    auto group = make_group(1);
    auto server = or_throw(local_server::listen(group, at()));
    EXPECT_TRUE(server.serve([](local_stream, const connection_info& info) -> task<> {
        EXPECT_EQ(info.credentials.pid, ::getpid());
        EXPECT_EQ(info.credentials.uid, ::getuid());
        EXPECT_EQ(info.number, 1U);
        co_return;
    }));

    EXPECT_EQ(connect(at()).receive_to_the_end(), errc::end_of_stream);
}

TEST_P(local_server_test, removes_its_path_when_it_ends) {
    auto group = make_group(2);
    {
        auto server = or_throw(local_server::listen(group, at()));
        EXPECT_TRUE(exists());
    }
    EXPECT_FALSE(exists());
    {
        auto server = or_throw(local_server::listen(group, at()));
        EXPECT_TRUE(server.serve(echo_locally));
        shut_down(server, 1h);
        EXPECT_FALSE(exists());
    }
}

TEST_P(local_server_test, leaves_the_path_of_another_server) {
    auto group = make_group(1);
    auto first = std::make_optional(or_throw(local_server::listen(group, at())));
    auto second =
        or_throw(local_server::listen(group, at(), {.listen = {.unlink_existing = true}}));
    EXPECT_TRUE(second.serve(echo_locally));

    first.reset();

    auto peer = connect(at());
    peer.send("x");
    EXPECT_EQ(peer.receive(1), "x");
}

TEST_P(local_server_test, leaves_the_path_to_its_successor) {
    auto group = make_group(1);
    auto first = std::make_optional(or_throw(local_server::listen(group, at())));
    std::vector<nonblocking::local_listener> inherited;
    for (auto& each : or_throw(first->duplicate_listeners()))
        inherited.push_back(or_throw(nonblocking::local_listener::adopt(std::move(each))));
    auto second = or_throw(local_server::adopt(group, std::move(inherited)));
    EXPECT_TRUE(second.serve(echo_locally));

    first.reset();

    auto peer = connect(at());
    peer.send("x");
    EXPECT_EQ(peer.receive(1), "x");
}

TEST_P(local_server_test, adopting_no_listener_fails) {
    auto group = make_group(1);
    EXPECT_EQ(error_of(local_server::adopt(group, {})), std::errc::invalid_argument);
}

TEST_P(local_server_test, a_path_that_exists_is_in_use) {
    auto group = make_group(1);
    auto first = or_throw(local_server::listen(group, at()));
    EXPECT_EQ(error_of(local_server::listen(group, at())), std::errc::address_in_use);
}

TEST_P(local_server_test, connections_beyond_the_limit_wait) {
    auto group = make_group(2);
    auto server = or_throw(local_server::listen(group, at(), {.max_connections = 1}));
    EXPECT_TRUE(server.serve(echo_locally));
    auto first = connect(at());
    first.send("x");
    EXPECT_EQ(first.receive(1), "x");
    auto second = connect(at());
    second.send("y");
    EXPECT_EQ(server.statistics().open, 1U);

    first.close();

    EXPECT_EQ(second.receive(1), "y");
}

INSTANTIATE_TEST_SUITE_P(backends, local_server_test,
                         ::testing::Values(backend::epoll, backend::io_uring),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
