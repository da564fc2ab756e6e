#include <simplenet/server/run_server.hpp>

#include "support/child_process.hpp"
#include "support/served_group.hpp"

#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/sleep.hpp>

#include <atomic>
#include <future>
#include <stop_token>
#include <thread>

#include <csignal>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::echo;

class run_server_test : public testing::served_test {
protected:
    [[nodiscard]] static run_server_options options() {
        run_server_options made;
        made.group.loops = 2;
        made.group.loop.backend = GetParam();
        return made;
    }
};

TEST_P(run_server_test, serves_until_its_token_is_stopped) {
    std::stop_source stop;
    std::promise<endpoint> listening;
    run_server_options with = options();
    with.on_listening = [](tcp_server& server, void* context) {
        static_cast<std::promise<endpoint>*>(context)->set_value(server.local_endpoint());
    };
    with.context = &listening;
    std::thread client{[&] {
        auto peer = connect(listening.get_future().get());
        peer.send("hello");
        EXPECT_EQ(peer.receive(5), "hello");
        peer.close();
        stop.request_stop();
    }};

    const auto report = run_server(endpoint::loopback(0), echo, with, stop.get_token());

    client.join();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->cut, 0U);
}

TEST_P(run_server_test, ends_when_a_handler_shuts_the_server_down) {
    static tcp_server* serving;
    static std::thread client;
    run_server_options with = options();
    with.on_listening = [](tcp_server& server, void*) {
        serving = &server;
        client = std::thread{[at = server.local_endpoint()] {
            EXPECT_EQ(connect(at).receive_to_the_end(), errc::end_of_stream);
        }};
    };

    const auto report = run_server(
        endpoint::loopback(0),
        [](tcp_stream) -> task<> {
            serving->request_shutdown(1h);
            EXPECT_TRUE(co_await server_stop());
        },
        with);

    client.join();
    EXPECT_TRUE(report);
}

TEST_P(run_server_test, cuts_what_is_left_after_the_grace) {
    run_server_options with = options();
    with.grace = 1ms;
    std::stop_source stop;
    std::optional<testing::raw_peer> peer;
    struct state {
        std::stop_source* stop;
        std::optional<testing::raw_peer>* peer;
    } shared{&stop, &peer};
    with.on_listening = [](tcp_server& server, void* context) {
        auto& with_state = *static_cast<state*>(context);
        with_state.peer->emplace(connect(server.local_endpoint()));
        EXPECT_TRUE(eventually([&] { return server.statistics().open == 1; }));
        with_state.stop->request_stop();
    };
    with.context = &shared;

    const auto report = run_server(
        endpoint::loopback(0),
        [](tcp_stream) -> task<> {
            static_cast<void>(co_await async_sleep(std::chrono::nanoseconds::max()));
        },
        with, stop.get_token());

    ASSERT_TRUE(report);
    EXPECT_EQ(report->cut, 1U);
}

TEST_P(run_server_test, returns_the_errors_of_listening) {
    auto group = make_group(1);
    auto other = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
    EXPECT_EQ(error_of(run_server(other.local_endpoint(), echo, options())),
              std::errc::address_in_use);
}

/// In a child process: on its main thread.
int serve_and_signal(backend which) {
    run_server_options with;
    with.group.loops = 2;
    with.group.loop.backend = which;
    with.on_listening = [](tcp_server&, void*) { ::kill(::getpid(), SIGTERM); };
    const auto report =
        run_server(endpoint::loopback(0), [](tcp_stream) -> task<> { co_return; }, with);
    return report ? 7 : 8;
}

TEST_P(run_server_test, a_signal_ends_it_in_order) {
    testing::child_process child{[] { return serve_and_signal(GetParam()); }};
    EXPECT_EQ(child.end(), "status 7");
}

TEST_P(run_server_test, off_the_main_thread_it_leaves_signals_alone) {
    testing::child_process child{[] {
        std::thread{[] { static_cast<void>(serve_and_signal(GetParam())); }}.join();
        return 9;
    }};
    EXPECT_EQ(child.end(), "signal 15");
}

TEST_P(run_server_test, a_second_signal_kills) {
    testing::child_process child{[] {
        run_server_options with = options();
        with.grace = 1h;
        static std::optional<testing::raw_peer> peer;
        with.on_listening = [](tcp_server& server, void*) {
            peer.emplace(connect(server.local_endpoint()));
            while (server.statistics().open == 0)
                std::this_thread::sleep_for(1ms);
            ::kill(::getpid(), SIGTERM);
        };
        static_cast<void>(run_server(
            endpoint::loopback(0),
            [](tcp_stream) -> task<> {
                EXPECT_TRUE(co_await server_stop());
                ::kill(::getpid(), SIGTERM);
                static_cast<void>(co_await async_sleep(1h));
            },
            with));
        return 9;
    }};
    EXPECT_EQ(child.end(), "signal 15");
}

TEST_P(run_server_test, inside_a_loop_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(simplenet::run(
                     []() -> task<> {
                         static_cast<void>(run_server(endpoint::loopback(0), echo));
                         co_return;
                     }(),
                     {.backend = GetParam()}),
                 "run_server\\(\\) inside a running loop");
}

INSTANTIATE_TEST_SUITE_P(backends, run_server_test,
                         ::testing::Values(backend::epoll, backend::io_uring),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
