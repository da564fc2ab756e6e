#include <simplenet/server/tcp_server.hpp>

#include "support/descriptor_limit.hpp"
#include "support/on_processor.hpp"
#include "support/served_group.hpp"
#include "support/unhandled_count.hpp"
#include "sys/processors.hpp"

#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <netinet/tcp.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::echo;
using testing::wait_for_peer;

class tcp_server_test : public testing::served_test {
protected:
    /// Connects `count` peers, and then more until `condition` of the least and the most
    /// connections of a loop holds: a loop that the machine delays gives connections back.
    template <class Condition>
    [[nodiscard]] bool eventually_balanced(const tcp_server& server, const endpoint& at,
                                           std::size_t count, Condition condition) {
        peers_ = connect(at, count);
        return eventually([&] {
            const server_statistics now = server.statistics();
            if (now.open != peers_.size()) return false;
            const auto [least, most] = std::ranges::minmax(now.open_by_loop);
            if (condition(least, most)) return true;
            peers_.push_back(connect(at));
            return false;
        });
    }
    [[nodiscard]] std::size_t connected() const { return peers_.size(); }

    /// The end of the program destroys a server, its group, and then another server of that.
    [[noreturn]] static void serve_until_exit(backend used) {
        static std::optional<tcp_server> outlives_its_group;
        static auto group =
            or_throw(event_loop_group::create({.loops = 2, .loop = {.backend = used}}));
        static auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
        outlives_its_group = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
        if (!server.serve(echo) || !outlives_its_group->serve(echo)) std::exit(1);
        static std::vector<std::vector<testing::raw_peer>> peers;
        for (tcp_server* const each : {&server, &*outlives_its_group}) {
            peers.push_back(connect(each->local_endpoint(), 3));
            while (each->statistics().open != 3)
                std::this_thread::yield();
        }
        std::exit(0);
    }

private:
    std::vector<testing::raw_peer> peers_;
};

endpoint anywhere() {
    return endpoint::loopback(0);
}

TEST_P(tcp_server_test, serves_on_every_loop) {
    auto group = make_group(3);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    auto server = or_throw(tcp_server::listen(
        group, anywhere(),
        {.accept = accept_mode::single_acceptor, .balance = balance::round_robin}));
    EXPECT_TRUE(server.serve([&](tcp_stream stream) -> task<> {
        {
            const std::lock_guard locked{mutex};
            threads.insert(std::this_thread::get_id());
        }
        co_await echo(std::move(stream));
    }));

    // More than three if the machine delays a loop, which then gives its connection back.
    std::vector<testing::raw_peer> peers;
    EXPECT_TRUE(eventually([&] {
        peers.push_back(connect(server.local_endpoint()));
        peers.back().send("hello");
        EXPECT_EQ(peers.back().receive(5), "hello");
        const std::lock_guard locked{mutex};
        return threads.size() == 3;
    }));
}

TEST_P(tcp_server_test, what_connects_before_serve_is_served) {
    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    auto peers = connect(server.local_endpoint(), 10);

    EXPECT_TRUE(server.serve(echo));

    for (auto& each : peers) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "x");
    }
}

TEST_P(tcp_server_test, counts_connections_and_failures) {
    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    EXPECT_TRUE(server.serve([](tcp_stream stream) -> task<result<>> {
        std::array<std::byte, 1> buffer;
        const auto count = co_await stream.read_some(buffer);
        if (!count) co_return fail(count);
        co_return result<>{};
    }));

    auto peers = connect(server.local_endpoint(), 4);
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 4; }));
    peers[0].send("x");
    peers[1].close();
    EXPECT_TRUE(eventually([&] { return server.statistics().ended == 2; }));

    const server_statistics now = server.statistics();
    EXPECT_EQ(now.accepted, 4U);
    EXPECT_EQ(now.failed, 1U);
    EXPECT_EQ(now.refused, 0U);
    EXPECT_EQ(now.open, 2U);
    EXPECT_EQ(now.open_by_loop.size(), 2U);
}

// --- exceptions ----------------------------------------------------------------------------------

TEST_P(tcp_server_test, an_exception_of_a_handler_goes_to_the_hook_and_ends_only_its_connection) {
    auto group = make_group(1);
    std::atomic<int> thrown = 0;
    auto server =
        or_throw(tcp_server::listen(group, anywhere(),
                                    {.on_handler_exception =
                                         [](std::exception_ptr exception, void* context) {
                                             EXPECT_THROW(std::rethrow_exception(exception),
                                                          std::runtime_error);
                                             ++*static_cast<std::atomic<int>*>(context);
                                         },
                                     .context = &thrown}));
    EXPECT_TRUE(server.serve([](tcp_stream stream) -> task<> {
        std::array<std::byte, 1> buffer;
        static_cast<void>(co_await stream.read_some(buffer));
        throw std::runtime_error{"as the test wants it"};
    }));

    auto survivor = connect(server.local_endpoint());
    auto peer = connect(server.local_endpoint());
    peer.send("x");
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);

    EXPECT_TRUE(eventually([&] { return server.statistics().failed == 1; }));
    EXPECT_EQ(thrown, 1);
    EXPECT_EQ(server.statistics().open, 1U);
    EXPECT_EQ(survivor.peek(), -EAGAIN);
}

TEST_P(tcp_server_test, without_a_hook_an_exception_goes_to_that_of_the_loop) {
    const testing::unhandled_count thrown;
    auto group = make_group(1, {.on_unhandled = testing::unhandled_count::hook});
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    // Not a coroutine: it throws before there is a task.
    EXPECT_TRUE(server.serve(
        [](tcp_stream) -> task<> { throw std::runtime_error{"as the test wants it"}; }));

    auto peer = connect(server.local_endpoint());
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);

    EXPECT_TRUE(eventually([&] { return thrown() == 1; }));
}

TEST_P(tcp_server_test, without_any_hook_an_exception_is_a_line_at_most_once_a_second) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    EXPECT_TRUE(server.serve(
        [](tcp_stream) -> task<> { throw std::runtime_error{"as the test wants it"}; }));

    ::testing::internal::CaptureStderr();
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t thrown = 0;
    // Another test may have printed one just now.
    while (std::chrono::steady_clock::now() - start < 1100ms || thrown < 10) {
        auto peer = connect(server.local_endpoint());
        EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
        ++thrown;
    }
    EXPECT_TRUE(eventually([&] { return server.statistics().failed == thrown; }));
    const std::string printed = ::testing::internal::GetCapturedStderr();
    const auto passed = std::chrono::steady_clock::now() - start;

    const auto lines = std::ranges::count(printed, '\n');
    EXPECT_GE(lines, 1) << printed;
    EXPECT_LE(lines, 1 + std::chrono::ceil<std::chrono::seconds>(passed).count()) << printed;
    EXPECT_NE(printed.find("as the test wants it"), std::string::npos);
}

// --- the handler ---------------------------------------------------------------------------------

/// Counts its copies.
class counted_handler {
public:
    explicit counted_handler(std::atomic<int>& copies)
        : copies_{&copies} {
        ++*copies_;
    }
    counted_handler(const counted_handler& other)
        : copies_{other.copies_} {
        ++*copies_;
    }
    counted_handler& operator=(const counted_handler&) = delete;
    ~counted_handler() { --*copies_; }

    task<> operator()(tcp_stream stream) {
        co_await wait_for_peer(std::move(stream));
        EXPECT_GT(*copies_, 0); // this one is still there
    }

private:
    std::atomic<int>* copies_;
};

TEST_P(tcp_server_test, each_loop_has_a_copy_of_the_handler_until_its_handlers_have_ended) {
    std::atomic<int> copies = 0;
    {
        auto group = make_group(3);
        auto server = or_throw(tcp_server::listen(group, anywhere()));
        EXPECT_TRUE(server.serve(counted_handler{copies}));
        EXPECT_EQ(copies, 3);
        const auto peers = connect(server.local_endpoint(), 5);
        EXPECT_TRUE(eventually([&] { return server.statistics().open == 5; }));
    }
    EXPECT_EQ(copies, 0);
}

TEST_P(tcp_server_test, serve_is_called_once) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    EXPECT_TRUE(server.serve(echo));

    EXPECT_DEATH(static_cast<void>(server.serve(echo)), "serve\\(\\) was called before");
}

TEST_P(tcp_server_test, a_server_that_was_moved_from_can_only_be_destroyed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    const tcp_server moved = std::move(server);

    EXPECT_DEATH(static_cast<void>(server.statistics()), "after it was moved from");
    EXPECT_DEATH(static_cast<void>(server.local_endpoint()), "after it was moved from");
}

TEST_P(tcp_server_test, may_have_static_storage_duration) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(serve_until_exit(GetParam()), ::testing::ExitedWithCode(0), "");
}

// --- listening -----------------------------------------------------------------------------------

TEST_P(tcp_server_test, a_second_server_finds_the_address_in_use_although_the_loops_share_it) {
    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(group, anywhere()));

    EXPECT_EQ(error_of(tcp_server::listen(group, server.local_endpoint())),
              std::errc::address_in_use);
}

TEST_P(tcp_server_test, servers_share_an_address_if_both_allow_it) {
    auto group = make_group(2);
    const server_options shared{.listen = {.reuse_port = true}};
    auto server = or_throw(tcp_server::listen(group, anywhere(), shared));

    EXPECT_TRUE(tcp_server::listen(group, server.local_endpoint(), shared));
}

TEST_P(tcp_server_test, a_single_acceptor_cannot_steer) {
    auto group = make_group(2);
    EXPECT_EQ(error_of(tcp_server::listen(
                  group, anywhere(),
                  {.accept = accept_mode::single_acceptor, .listen = {.steer_by_cpu = true}})),
              std::errc::invalid_argument);
}

TEST_P(tcp_server_test, a_steered_server_serves) {
    auto group = make_group(2);
    auto server =
        or_throw(tcp_server::listen(group, anywhere(), {.listen = {.steer_by_cpu = true}}));
    EXPECT_TRUE(server.serve(echo));
    auto peers = connect(server.local_endpoint(), 20);
    for (auto& each : peers) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "x");
    }
}

// On loopback the processor of the client handles the handshake.
TEST_P(tcp_server_test, a_steered_server_serves_on_the_loop_of_the_processor_modulo_their_number) {
    const auto processors = detail::sys::allowed_processors();
    for (const unsigned loops : {2U, 3U}) { // more than processors, or fewer, on nearly any machine
        auto group = make_group(loops);
        auto server =
            or_throw(tcp_server::listen(group, anywhere(), {.listen = {.steer_by_cpu = true}}));
        EXPECT_TRUE(server.serve(echo));
        std::vector<std::size_t> expected(loops);
        std::vector<testing::raw_peer> peers;
        for (const unsigned processor : processors) {
            const testing::on_processor here{static_cast<int>(processor)};
            for (int each = 0; each < 8; ++each)
                peers.push_back(connect(server.local_endpoint()));
            expected[processor % loops] += 8;
        }

        EXPECT_TRUE(eventually([&] { return server.statistics().open == peers.size(); }));
        EXPECT_EQ(server.statistics().open_by_loop, expected);
    }
}

TEST_P(tcp_server_test, adopts_listeners) {
    for (const std::size_t count : {1U, 2U, 5U}) {
        auto group = make_group(3);
        std::vector<nonblocking::tcp_listener> listeners;
        std::vector<endpoint> addresses;
        for (std::size_t each = 0; each < count; ++each) {
            listeners.push_back(or_throw(nonblocking::tcp_listener::bind(anywhere())));
            addresses.push_back(or_throw(listeners.back().local_endpoint()));
        }
        auto server = or_throw(tcp_server::adopt(group, std::move(listeners)));
        EXPECT_TRUE(server.serve(echo));
        for (const endpoint& each : addresses) {
            auto peer = connect(each);
            peer.send("x");
            EXPECT_EQ(peer.receive(1), "x");
        }
    }
}

TEST_P(tcp_server_test, adopting_no_listener_fails) {
    auto group = make_group(1);
    EXPECT_EQ(error_of(tcp_server::adopt(group, {})), std::errc::invalid_argument);
}

TEST_P(tcp_server_test, a_successor_takes_the_listeners_over_and_nobody_is_refused) {
    auto group = make_group(2);
    std::optional<tcp_server> first{or_throw(tcp_server::listen(group, anywhere()))};
    const endpoint at = first->local_endpoint();
    EXPECT_TRUE(first->serve(echo));
    std::vector<nonblocking::tcp_listener> inherited;
    for (auto& each : or_throw(first->duplicate_listeners()))
        inherited.push_back(or_throw(nonblocking::tcp_listener::adopt(std::move(each))));
    EXPECT_EQ(inherited.size(), 2U);

    shut_down(*first, 0s);
    EXPECT_EQ(error_of(first->duplicate_listeners()), std::errc::bad_file_descriptor);
    auto between = connect(at); // waits in the backlog
    auto second = or_throw(tcp_server::adopt(group, std::move(inherited)));
    EXPECT_TRUE(second.serve(echo));

    between.send("x");
    EXPECT_EQ(between.receive(1), "x");
}

// A duplicate gets the number of a listener that was closed. epoll still had the registration of
// that one, because the file was open, and refused the new one: clients waited for ever.
TEST_P(tcp_server_test, a_listener_may_be_succeeded_in_one_process_many_times) {
    auto group = make_group(1);
    std::optional<tcp_server> server{or_throw(tcp_server::listen(group, anywhere()))};
    const endpoint at = server->local_endpoint();
    EXPECT_TRUE(server->serve(echo));
    for (int succession = 0; succession < 8; ++succession) {
        std::vector<nonblocking::tcp_listener> inherited;
        for (auto& each : or_throw(server->duplicate_listeners()))
            inherited.push_back(or_throw(nonblocking::tcp_listener::adopt(std::move(each))));
        auto successor = or_throw(tcp_server::adopt(group, std::move(inherited)));
        EXPECT_TRUE(successor.serve(echo));
        shut_down(*server, 0s);
        server.emplace(std::move(successor));

        // The second one comes when the loop has seen that nobody waits.
        for (int clients = 0; clients < 2; ++clients) {
            auto client = connect(at);
            client.send("x");
            EXPECT_EQ(client.receive(1), "x");
        }
    }
}

// --- options of connections ----------------------------------------------------------------------

TEST_P(tcp_server_test, no_delay_is_on_unless_turned_off) {
    for (const bool on : {true, false}) {
        auto group = make_group(1);
        auto server = or_throw(tcp_server::listen(group, anywhere(), {.no_delay = on}));
        EXPECT_TRUE(server.serve([on](tcp_stream stream) -> task<> {
            EXPECT_EQ(stream.no_delay(), on);
            co_return;
        }));
        EXPECT_EQ(connect(server.local_endpoint()).receive_to_the_end(), errc::end_of_stream);
    }
}

TEST_P(tcp_server_test, idle_connections_end) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, anywhere(), {.idle_timeout = 5ms}));
    EXPECT_TRUE(server.serve([](tcp_stream stream) -> task<> {
        std::array<std::byte, 1> buffer;
        EXPECT_EQ(error_of(co_await stream.read_some(buffer)), errc::deadline_exceeded);
    }));

    EXPECT_EQ(connect(server.local_endpoint()).receive_to_the_end(), errc::end_of_stream);
}

// --- balance -------------------------------------------------------------------------------------

TEST_P(tcp_server_test, a_single_acceptor_gives_each_loop_the_same_number) {
    auto group = make_group(4);
    auto server =
        or_throw(tcp_server::listen(group, anywhere(), {.accept = accept_mode::single_acceptor}));
    EXPECT_TRUE(server.serve(wait_for_peer));

    EXPECT_TRUE(
        eventually_balanced(server, server.local_endpoint(), 40,
                            [](std::size_t least, std::size_t most) { return most - least <= 1; }));
}

TEST_P(tcp_server_test, loops_without_a_listener_have_their_turns) {
    auto group = make_group(3);
    std::vector<nonblocking::tcp_listener> listeners;
    for (int each = 0; each < 2; ++each)
        listeners.push_back(or_throw(nonblocking::tcp_listener::bind(anywhere())));
    const endpoint at = or_throw(listeners.front().local_endpoint());
    auto server =
        or_throw(tcp_server::adopt(group, std::move(listeners), {.balance = balance::round_robin}));
    EXPECT_TRUE(server.serve(wait_for_peer));

    EXPECT_TRUE(eventually_balanced(server, at, 30,
                                    [](std::size_t least, std::size_t) { return least >= 10; }));
}

TEST_P(tcp_server_test, loops_with_many_connections_give_new_ones_to_others) {
    auto group = make_group(4);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    EXPECT_TRUE(server.serve(wait_for_peer));

    EXPECT_TRUE(eventually_balanced(
        server, server.local_endpoint(), 400,
        [&](std::size_t, std::size_t most) { return most <= connected() / 4 + 4 + 1; }));
}

/// Blocks the thread of the first connection until it is released.
TEST_P(tcp_server_test, connections_passed_to_a_blocked_loop_are_taken_back) {
    std::latch release{1}; // the blocked thread looks at it again after count_down()
    std::atomic<bool> blocked = false;
    auto group = make_group(3);
    auto server =
        or_throw(tcp_server::listen(group, anywhere(), {.accept = accept_mode::single_acceptor}));
    event_loop* const acceptor = &group[0];
    EXPECT_TRUE(server.serve([&, acceptor](tcp_stream stream) -> task<> {
        // Never the loop that accepts: that would be its own fault.
        if (event_loop::current() != acceptor && !blocked.exchange(true)) release.wait();
        co_await echo(std::move(stream));
    }));
    std::vector<testing::raw_peer> first;
    while (!blocked)
        first.push_back(connect(server.local_endpoint()));

    auto peers = connect(server.local_endpoint(), 20);
    for (auto& each : peers) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "x");
    }

    release.count_down();
}

// --- limits --------------------------------------------------------------------------------------

TEST_P(tcp_server_test, connections_beyond_the_limit_wait_until_another_ends) {
    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(group, anywhere(), {.max_connections = 3}));
    std::atomic<int> served = 0;
    EXPECT_TRUE(server.serve([&](tcp_stream stream) -> task<> {
        EXPECT_LE(++served, 3);
        co_await echo(std::move(stream));
        --served;
    }));
    auto peers = connect(server.local_endpoint(), 5);
    for (auto& each : peers)
        each.send("x");
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 3; }));
    EXPECT_EQ(server.statistics().accepted, 3U);

    std::size_t answered = 0;
    while (answered < peers.size()) { // ends each that is served
        for (auto& each : peers) {
            if (each.fd() < 0 || each.peek() != 1) continue;
            EXPECT_EQ(each.receive(1), "x");
            each.close();
            ++answered;
        }
    }
    EXPECT_TRUE(eventually([&] { return server.statistics().ended == 5; }));
}

TEST_P(tcp_server_test, connections_beyond_the_limit_can_be_reset) {
    auto group = make_group(2);
    auto server = or_throw(
        tcp_server::listen(group, anywhere(), {.max_connections = 3, .full = when_full::reset}));
    EXPECT_TRUE(server.serve(wait_for_peer));
    const auto peers = connect(server.local_endpoint(), 3);
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 3; }));

    EXPECT_EQ(end_of_refused(server.local_endpoint()), std::errc::connection_reset);
    EXPECT_TRUE(eventually([&] { return server.statistics().refused == 1; }));

    const server_statistics now = server.statistics();
    EXPECT_EQ(now.refused, 1U);
    EXPECT_EQ(now.accepted, 4U);
    EXPECT_EQ(now.open, 3U);
}

TEST_P(tcp_server_test, a_shortage_of_descriptors_loses_no_connection) {
    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(group, anywhere()));
    EXPECT_TRUE(server.serve(echo));
    auto peers = connect(server.local_endpoint(), 1);
    EXPECT_TRUE(eventually([&] { return server.statistics().open == 1; }));
    std::vector<unique_fd> sockets;
    for (int each = 0; each < 8; ++each) {
        sockets.emplace_back(testing::checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(server.local_endpoint().port());
    {
        const testing::descriptor_limit none{2};
        for (const auto& each : sockets)
            EXPECT_EQ(::connect(each.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
        EXPECT_TRUE(eventually([&] { return server.statistics().open >= 2; }));
    }
    for (auto& each : sockets) {
        testing::raw_peer peer{std::move(each)};
        peer.send("x");
        EXPECT_EQ(peer.receive(1), "x");
    }
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_server_test,
                         ::testing::Values(backend::epoll, backend::io_uring),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
