#include <simplenet/callbacks/client.hpp>

#include "called.hpp"
#include "support/closed_port.hpp"
#include "support/served_group.hpp"
#include "support/unhandled_count.hpp"

#include <simplenet/callbacks/server.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using callbacks::connection_ptr;
using testing::closed_port;

constexpr client_options at_once{.backoff = {.initial = 1ms, .maximum = 5ms}};

/// Clients of a port whose connections each test accepts itself.
class callbacks_client_test : public testing::served_test {
protected:
    [[nodiscard]] callbacks::handlers watching() {
        callbacks::handlers made;
        made.on_connection = seen_.counter();
        made.on_message = [this](const connection_ptr&, callbacks::buffer& input) {
            seen_.event(input.retrieve_all_as_string());
        };
        return made;
    }
    [[nodiscard]] callbacks::client make(event_loop& loop) { return make(loop, watching()); }
    [[nodiscard]] callbacks::client make(event_loop& loop, callbacks::handlers handlers) {
        return {loop, "127.0.0.1", port_.number(), std::move(handlers), at_once};
    }
    /// A client that is connected, and its peer.
    struct connected {
        callbacks::client client;
        testing::raw_peer peer;
    };
    [[nodiscard]] connected make_connected(event_loop& loop) {
        port_.open();
        auto client = make(loop);
        client.connect();
        auto peer = port_.accept();
        EXPECT_TRUE(are_up(1));
        return {std::move(client), std::move(peer)};
    }
    [[nodiscard]] static event_loop make_loop(loop_options with = {}) {
        with.backend = GetParam();
        return or_throw(event_loop::create(with));
    }
    [[nodiscard]] bool are_up(std::size_t count) const {
        return eventually([&] { return seen_.ups() == count; });
    }
    [[nodiscard]] bool are_down(std::size_t count) const {
        return eventually([&] { return seen_.downs() == count; });
    }

    testing::called seen_;
    closed_port port_;
};

TEST_P(callbacks_client_test, connects_and_talks) {
    port_.open();
    auto group = make_group(1);
    auto client = make(group[0]);
    EXPECT_EQ(client.connection(), nullptr);

    client.connect();
    client.connect(); // does nothing
    auto peer = port_.accept();
    EXPECT_TRUE(are_up(1));
    EXPECT_EQ(client.connection(), seen_.connection());
    EXPECT_EQ(client.connection()->peer().port(), port_.number());
    client.connection()->send("question");
    EXPECT_EQ(peer.receive(8), "question");
    peer.send("answer");

    EXPECT_TRUE(eventually([&] { return seen_.events() == "answer"; }));
}

TEST_P(callbacks_client_test, tries_until_somebody_listens) {
    auto group = make_group(1);
    auto client = make(group[0]);
    client.connect();

    port_.open();
    auto peer = port_.accept();

    EXPECT_TRUE(are_up(1));
}

TEST_P(callbacks_client_test, connects_again_when_the_connection_ends) {
    port_.open();
    auto group = make_group(1);
    auto client = make(group[0]);
    client.connect();

    {
        auto first = port_.accept();
        EXPECT_TRUE(are_up(1)); // else connecting would fail
        first.close();
        auto second = port_.accept();
        EXPECT_TRUE(are_up(2));
        second.reset();
    }
    auto peer = port_.accept();

    EXPECT_TRUE(are_up(3));
    EXPECT_TRUE(are_down(2));
    EXPECT_NE(seen_.connection(0), seen_.connection(2));
    seen_.connection(2)->close(); // by the program, too
    auto next = port_.accept();
    EXPECT_TRUE(are_up(4));
}

TEST_P(callbacks_client_test, disconnect_ends_in_order_and_stays_away) {
    port_.open();
    auto loop = make_loop();
    auto handlers = watching();
    std::optional<callbacks::client> client;
    handlers.on_connection = seen_.counter([&](const connection_ptr& connection) {
        connection->send(std::string(1'000'000, 'x'));
        client->disconnect();
    });
    client.emplace(make(loop, handlers));
    client->connect();
    std::thread peer{[&] {
        auto accepted = port_.accept();
        EXPECT_EQ(accepted.receive(1'000'001).size(), 1'000'000U);
    }};

    loop.run(); // ends

    peer.join();
    EXPECT_EQ(seen_.ups(), 1U);
    EXPECT_EQ(seen_.downs(), 1U);
    EXPECT_EQ(seen_.error(), std::error_code{});
    EXPECT_EQ(client->connection(), nullptr);
}

TEST_P(callbacks_client_test, stop_ends_attempts) {
    auto loop = make_loop();
    auto client = make(loop);
    client.connect();
    EXPECT_FALSE(loop.run_for(20ms));

    client.stop();

    EXPECT_TRUE(loop.run_for(testing::test_limit));
    EXPECT_EQ(seen_.ups(), 0U);
}

TEST_P(callbacks_client_test, stop_before_the_loop_runs_is_not_lost) {
    port_.open();
    auto loop = make_loop();
    auto client = make(loop);
    client.connect();

    client.stop();

    EXPECT_TRUE(loop.run_for(testing::test_limit));
    EXPECT_EQ(seen_.ups(), 0U);
}

TEST_P(callbacks_client_test, stop_ends_the_connection_at_once) {
    auto group = make_group(1);
    auto [client, peer] = make_connected(group[0]);

    client.stop();

    EXPECT_TRUE(are_down(1));
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(callbacks_client_test, connects_anew_after_a_stop) {
    port_.open();
    auto group = make_group(1);
    auto client = make(group[0]);

    for (std::size_t round = 1; round <= 3; ++round) {
        client.connect();
        auto peer = port_.accept();
        EXPECT_TRUE(are_up(round));
        client.stop();
        EXPECT_TRUE(are_down(round));
    }
}

TEST_P(callbacks_client_test, connect_right_after_a_stop_is_not_lost) {
    auto group = make_group(1);
    auto [client, first] = make_connected(group[0]);

    client.stop();
    client.connect();

    auto second = port_.accept();
    EXPECT_TRUE(are_up(2));
}

TEST_P(callbacks_client_test, its_destructor_waits_for_the_last_call) {
    auto group = make_group(1);
    auto [client, peer] = make_connected(group[0]);

    {
        const callbacks::client ends = std::move(client);
    }

    EXPECT_EQ(seen_.downs(), 1U);
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(callbacks_client_test, may_be_destroyed_by_its_own_handler) {
    port_.open();
    auto loop = make_loop();
    std::optional<callbacks::client> client;
    auto handlers = watching();
    handlers.on_message = [&](const connection_ptr&, callbacks::buffer&) {
        client.reset();
        EXPECT_EQ(seen_.downs(), 1U);
    };
    client.emplace(make(loop, handlers));
    client->connect();
    std::thread peer{[&] {
        auto accepted = port_.accept();
        accepted.send("x");
        static_cast<void>(accepted.receive_to_the_end());
    }};

    loop.run();

    peer.join();
    EXPECT_EQ(seen_.downs(), 1U);
}

TEST_P(callbacks_client_test, may_be_destroyed_while_its_loop_does_not_run) {
    port_.open();
    auto loop = make_loop();
    {
        auto never_ran = make(loop);
        never_ran.connect();
    }
    std::optional<callbacks::client> client{make(loop)};
    client->connect();
    EXPECT_TRUE(eventually([&] {
        static_cast<void>(loop.run_for(1ms));
        return seen_.ups() == 1;
    }));

    client.reset();

    EXPECT_EQ(seen_.downs(), 1U);
    EXPECT_TRUE(loop.run_for(testing::test_limit));
    EXPECT_EQ(seen_.downs(), 1U);
}

TEST_P(callbacks_client_test, may_outlive_its_loop) {
    auto group = std::optional{make_group(1)};
    auto [client, peer] = make_connected((*group)[0]);

    group.reset();

    EXPECT_EQ(seen_.downs(), 1U);
    EXPECT_EQ(client.connection(), nullptr);
    client.disconnect();
    client.stop();
}

TEST_P(callbacks_client_test, a_loop_that_was_stopped_does_not_connect) {
    auto group = make_group(1);
    auto client = make(group[0]);
    group.stop();

    client.connect();
    client.connect();

    EXPECT_EQ(client.connection(), nullptr);
}

TEST_P(callbacks_client_test, an_exception_of_a_handler_is_told_and_ends_only_its_connection) {
    port_.open();
    const testing::unhandled_count unhandled;
    auto group = make_group(1, {.on_unhandled = testing::unhandled_count::hook});
    auto handlers = watching();
    handlers.on_message = [](const connection_ptr&, callbacks::buffer&) {
        throw std::runtime_error{"test"};
    };
    auto client = make(group[0], handlers);
    client.connect();
    auto peer = port_.accept();

    peer.send("x");

    EXPECT_TRUE(are_down(1));
    EXPECT_TRUE(eventually([&] { return unhandled() == 1; }));
    auto next = port_.accept();
    EXPECT_TRUE(are_up(2));
}

TEST_P(callbacks_client_test, an_exception_of_a_handler_that_no_hook_takes_ends_no_process) {
    port_.open();
    auto loop = make_loop();
    auto handlers = watching();
    std::optional<callbacks::client> client;
    handlers.on_connection = seen_.counter([&](const connection_ptr&) {
        if (seen_.ups() == 1) throw std::runtime_error{"as the test wants it"};
        client->stop();
    });
    client.emplace(make(loop, handlers));
    client->connect();

    EXPECT_TRUE(loop.run_for(testing::test_limit));

    EXPECT_EQ(seen_.ups(), 2U);
    EXPECT_EQ(seen_.downs(), 2U);
}

TEST_P(callbacks_client_test, may_be_moved_and_replaced) {
    auto group = make_group(1);
    auto [first, peer] = make_connected(group[0]);

    auto second = std::move(first);
    EXPECT_NE(second.connection(), nullptr);
    second = make(group[0]);

    EXPECT_EQ(seen_.downs(), 1U);
    EXPECT_EQ(second.connection(), nullptr);
}

TEST_P(callbacks_client_test, threads_may_use_it_at_once) {
    port_.open();
    auto group = make_group(1);
    auto client = make(group[0]);
    std::vector<std::thread> threads;
    for (int each = 0; each < 3; ++each) {
        threads.emplace_back([&] {
            for (int round = 0; round < 300; ++round) {
                client.connect();
                if (const auto connection = client.connection()) connection->send("x");
                client.disconnect();
                client.connect();
                client.stop();
            }
        });
    }

    for (auto& each : threads)
        each.join();
    client.stop();
    EXPECT_TRUE(eventually([&] { return seen_.ups() == seen_.downs(); }));
}

/// One of many clients of a server that comes and goes. What it knows is of its loop's thread, but
/// for the last answer.
struct persistent {
    static constexpr client_options patient{.backoff = {.initial = 20ms, .maximum = 200ms}};

    persistent(event_loop& loop, std::uint16_t port)
        : client{loop, "127.0.0.1", port, handlers(), patient} {
        client.connect();
    }
    callbacks::handlers handlers() {
        callbacks::handlers made;
        made.on_connection = [this](const connection_ptr& connection) {
            // Each connection ends before the next one begins.
            if (connection->is_connected() == is_up) ++mistakes;
            is_up = connection->is_connected();
            if (is_up) connection->send("?");
        };
        made.on_message = [this](const connection_ptr&, callbacks::buffer& input) {
            answer = input.retrieve_all_as_string().back();
        };
        return made;
    }

    std::atomic<bool> is_up = false;
    std::atomic<int> mistakes = 0;
    std::atomic<char> answer = ' ';
    callbacks::client client; // ends before what its handlers use
};

TEST_P(callbacks_client_test, a_thousand_stay_with_a_server_that_comes_and_goes) {
    constexpr std::size_t count = 1000;
    auto group = make_group(2);
    auto servers = make_group(1);
    std::vector<std::unique_ptr<persistent>> clients;
    for (std::size_t each = 0; each < count; ++each)
        clients.push_back(std::make_unique<persistent>(group[each % 2], port_.number()));

    for (const char round : {'a', 'b', 'c'}) {
        callbacks::handlers handlers;
        handlers.on_message = [round](const connection_ptr& connection, callbacks::buffer& input) {
            input.retrieve_all();
            connection->send(std::string(1, round));
        };
        callbacks::server server{
            servers, endpoint::loopback(port_.number()), handlers, {.listen = {.backlog = 2048}}};
        server.start();
        EXPECT_TRUE(eventually([&] {
            return std::ranges::all_of(clients,
                                       [&](const auto& each) { return each->answer == round; });
        }));
    }

    for (const auto& each : clients)
        each->client.stop();
    EXPECT_TRUE(eventually([&] {
        return std::ranges::none_of(clients, [](const auto& each) { return each->is_up.load(); });
    }));
    for (const auto& each : clients)
        EXPECT_EQ(each->mistakes, 0);
}

INSTANTIATE_TEST_SUITE_P(backends, callbacks_client_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
