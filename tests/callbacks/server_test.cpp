#include <simplenet/callbacks/server.hpp>

#include "called.hpp"
#include "support/served_group.hpp"

#include <simplenet/runtime/run.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using callbacks::connection_ptr;

class server_test : public testing::served_test {
protected:
    [[nodiscard]] callbacks::handlers echoing() {
        callbacks::handlers made;
        made.on_connection = seen_.counter();
        made.on_message = [](const connection_ptr& connection, callbacks::buffer& input) {
            connection->send(input);
            input.retrieve_all();
        };
        return made;
    }
    /// Connects, and waits until the handlers know.
    std::vector<testing::raw_peer> meet(const callbacks::server& server, std::size_t count) {
        auto peers = connect(server.local_endpoint(), count);
        EXPECT_TRUE(eventually([&] { return seen_.ups() == count; }));
        return peers;
    }

    testing::called seen_;
};

TEST_P(server_test, serves_on_every_loop) {
    auto group = make_group(3);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    auto handlers = echoing();
    handlers.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        {
            const std::lock_guard locked{mutex};
            threads.insert(std::this_thread::get_id());
        }
        connection->send(input);
        input.retrieve_all();
    };
    callbacks::server server{
        group,
        endpoint::loopback(0),
        handlers,
        {.accept = accept_mode::single_acceptor, .balance = balance::round_robin}};
    server.start();

    auto peers = meet(server, 3);
    for (auto& each : peers) {
        each.send("hello");
        EXPECT_EQ(each.receive(5), "hello");
    }

    const std::lock_guard locked{mutex};
    EXPECT_EQ(threads.size(), 3U);
}

TEST_P(server_test, the_constructor_throws_what_listening_reports) {
    auto group = make_group(2);
    const callbacks::server first{group, endpoint::loopback(0), {}};

    try {
        const callbacks::server second{group, first.local_endpoint(), {}};
        FAIL() << "two servers listen at the same address";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::address_in_use);
    }
}

TEST_P(server_test, what_connects_before_start_is_served) {
    auto group = make_group(2);
    callbacks::server server{group, endpoint::loopback(0), echoing()};
    auto peers = connect(server.local_endpoint(), 5);

    server.start();
    server.start(); // does nothing

    for (auto& each : peers) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "x");
    }
    EXPECT_EQ(server.statistics().open, 5U);
}

TEST_P(server_test, connections_stay_during_the_grace) {
    auto group = make_group(2);
    callbacks::server server{group, endpoint::loopback(0), echoing()};
    server.start();
    auto peers = meet(server, 2);

    server.stop(1h);

    for (auto& each : peers) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "x");
        each.close();
    }
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 0; }));
    EXPECT_EQ(seen_.downs(), 2U);
    EXPECT_EQ(seen_.error(), std::error_code{});
}

TEST_P(server_test, connections_are_told_of_the_end_of_the_grace) {
    auto group = make_group(2);
    callbacks::server server{group, endpoint::loopback(0), echoing()};
    server.start();
    auto peers = meet(server, 4);

    server.stop(1h);
    server.stop(1ms);

    for (auto& each : peers)
        EXPECT_EQ(each.receive_to_the_end(), errc::end_of_stream);
    EXPECT_TRUE(eventually([&] { return seen_.downs() == 4; }));
    EXPECT_EQ(seen_.error(), std::errc::operation_canceled);
}

TEST_P(server_test, shutdown_waits_for_connections_that_end_by_themselves) {
    auto group = make_group(2);
    std::atomic<bool> is_ending = false;
    auto handlers = echoing();
    handlers.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        connection->send(input);
        input.retrieve_all();
        if (is_ending) connection->shutdown();
    };
    callbacks::server server{group, endpoint::loopback(0), handlers};
    server.start();
    auto peers = meet(server, 3);
    std::thread clients{[&] {
        is_ending = true;
        for (auto& each : peers) {
            each.send("last");
            EXPECT_EQ(each.receive(5), "last");
            each.close();
        }
    }};

    const shutdown_report report = run(server.shutdown(1h), {.backend = GetParam()});

    EXPECT_EQ(seen_.downs(), 3U);
    EXPECT_EQ(server.statistics().open, 0U);
    EXPECT_LE(report.drained, 3U); // some may have ended before it began
    EXPECT_EQ(report.cut, 0U);
    clients.join();
}

TEST_P(server_test, shutdown_reports_whom_it_cut) {
    auto group = make_group(2);
    callbacks::server server{group, endpoint::loopback(0), echoing()};
    server.start();
    auto peers = meet(server, 3);

    const shutdown_report report = run(server.shutdown(1ms), {.backend = GetParam()});

    EXPECT_EQ(report.drained, 0U);
    EXPECT_EQ(report.cut, 3U);
    EXPECT_EQ(seen_.downs(), 3U);
    EXPECT_EQ(seen_.error(), std::errc::operation_canceled);
}

TEST_P(server_test, the_destructor_waits_for_the_handlers) {
    auto group = make_group(2);
    std::optional<callbacks::server> server;
    server.emplace(group, endpoint::loopback(0), echoing());
    server->start();
    auto peers = meet(*server, 4);

    server.reset();

    EXPECT_EQ(seen_.downs(), 4U);
}

TEST_P(server_test, may_be_destroyed_without_a_start) {
    auto group = make_group(2);
    const callbacks::server server{group, endpoint::loopback(0), echoing()};
}

TEST_P(server_test, start_after_stop_does_nothing) {
    auto group = make_group(1);
    callbacks::server server{group, endpoint::loopback(0), echoing()};

    server.stop(0s);
    server.start();

    EXPECT_EQ(seen_.ups(), 0U);
}

TEST_P(server_test, may_outlive_its_group) {
    auto group = std::optional{make_group(2)};
    callbacks::server server{*group, endpoint::loopback(0), echoing()};
    server.start();
    auto peers = meet(server, 3);

    group.reset();

    EXPECT_EQ(seen_.downs(), 3U);
    server.stop(1h);
    EXPECT_EQ(server.statistics().open, 0U);
}

TEST_P(server_test, may_be_moved_while_it_serves) {
    auto group = make_group(1);
    callbacks::server first{group, endpoint::loopback(0), echoing()};
    first.start();
    auto peers = meet(first, 1);

    callbacks::server second{std::move(first)};

    peers[0].send("x");
    EXPECT_EQ(peers[0].receive(1), "x");
}

TEST_P(server_test, a_handler_may_stop_it) {
    auto group = make_group(2);
    std::optional<callbacks::server> server;
    auto handlers = echoing();
    handlers.on_message = [&](const connection_ptr&, callbacks::buffer&) { server->stop(0s); };
    server.emplace(group, endpoint::loopback(0), handlers);
    server->start();
    auto peers = meet(*server, 3);

    peers[0].send("x");

    EXPECT_TRUE(eventually([&] { return seen_.downs() == 3; }));
}

TEST_P(server_test, each_loop_has_handlers_of_its_own) {
    auto group = make_group(2);
    auto handlers = echoing();
    handlers.on_message = [count = 0](const connection_ptr& connection,
                                      callbacks::buffer& input) mutable {
        input.retrieve_all();
        connection->send(std::to_string(++count));
    };
    callbacks::server server{
        group,
        endpoint::loopback(0),
        handlers,
        {.accept = accept_mode::single_acceptor, .balance = balance::round_robin}};
    server.start();

    for (auto& each : meet(server, 2)) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "1");
    }
}

INSTANTIATE_TEST_SUITE_P(backends, server_test, testing::real_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
