// How servers end: shutdown, destruction, the end of their loops.

#include "support/served_group.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/runtime/run_blocking.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <atomic>
#include <exception>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::echo;
using testing::wait_for_peer;

class server_shutdown_test : public testing::served_test {
protected:
    /// A server of two loops.
    void listen(const server_options& options = {}) {
        group_.emplace(make_group(2));
        server_.emplace(or_throw(tcp_server::listen(*group_, endpoint::loopback(0), options)));
        at_ = server_->local_endpoint();
    }
    template <class Handler>
    void serve(Handler handler, const server_options& options = {}) {
        listen(options);
        EXPECT_TRUE(server_->serve(std::move(handler)));
    }
    std::vector<testing::raw_peer> connect_open(std::size_t count) {
        auto peers = connect(at_, count);
        EXPECT_TRUE(eventually([&] { return server().statistics().open == count; }));
        return peers;
    }
    [[nodiscard]] tcp_server& server() { return *server_; }
    [[nodiscard]] event_loop_group& group() { return *group_; }
    [[nodiscard]] const endpoint& at() const { return at_; }
    [[nodiscard]] std::error_code connect_error() const {
        return error_of(blocking::tcp_stream::connect(at_));
    }

    std::optional<event_loop_group> group_;
    std::optional<tcp_server> server_;

private:
    endpoint at_;
};

/// Ends when its server shuts down.
task<> serve_until_stop(tcp_stream) {
    EXPECT_FALSE(co_await this_task::server_stopping());
    EXPECT_TRUE(co_await server_stop());
    EXPECT_TRUE(co_await this_task::server_stopping());
}

/// Never ends by itself.
task<> serve_for_ever(tcp_stream) {
    static_cast<void>(co_await async_sleep(std::chrono::nanoseconds::max()));
}

TEST_P(server_shutdown_test, a_server_without_connections_ends_at_once) {
    serve(echo);
    const shutdown_report report = shut_down(server(), 1h);

    EXPECT_EQ(report.drained, 0U);
    EXPECT_EQ(report.cut, 0U);
    EXPECT_EQ(connect_error(), std::errc::connection_refused);
}

TEST_P(server_shutdown_test, a_server_that_never_served_ends_and_serves_no_more) {
    listen();
    const shutdown_report report = shut_down(server(), 1h);

    EXPECT_EQ(report.drained + report.cut, 0U);
    EXPECT_EQ(connect_error(), std::errc::connection_refused);
    EXPECT_EQ(error_of(server().serve(echo)), std::errc::operation_canceled);
}

TEST_P(server_shutdown_test, handlers_that_end_in_time_are_drained) {
    serve(serve_until_stop);
    const auto peers = connect_open(10);

    const shutdown_report report = shut_down(server(), 1h);

    EXPECT_EQ(report.drained, 10U);
    EXPECT_EQ(report.cut, 0U);
    EXPECT_EQ(server().statistics().open, 0U);
}

TEST_P(server_shutdown_test, handlers_that_do_not_end_are_cut_after_the_grace) {
    serve(serve_for_ever);
    const auto peers = connect_open(10);
    const auto before = steady_clock::now();

    const shutdown_report report = shut_down(server(), 20ms);

    EXPECT_GE(steady_clock::now() - before, 20ms);
    EXPECT_EQ(report.drained, 0U);
    EXPECT_EQ(report.cut, 10U);
    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(server_shutdown_test, a_call_to_a_pool_that_has_begun_is_waited_for) {
    std::latch begun{1}, released{1};
    std::atomic<bool> is_cut = false, over = false;
    serve([&](tcp_stream stream) -> task<> {
        const auto block = [&] {
            begun.count_down();
            released.wait();
            over = true;
        };
        const auto notice = [&](tcp_stream own) -> task<> {
            co_await serve_for_ever(std::move(own));
            is_cut = true;
        };
        auto blocking = run_blocking(block);
        auto noticing = notice(std::move(stream));
        co_await when_all(std::move(blocking), std::move(noticing));
    });
    const auto peers = connect_open(1);
    begun.wait();

    auto ending = std::async(std::launch::async, [&] { return shut_down(server(), 0ms); });
    EXPECT_TRUE(eventually([&] { return is_cut.load(); }));
    EXPECT_EQ(ending.wait_for(20ms), std::future_status::timeout);
    released.count_down();

    EXPECT_EQ(ending.get().cut, 1U);
    EXPECT_TRUE(over);
}

/// In a stopped handler the call is refused, and without a result to return it throws.
task<> call_a_pool_once_stopped(tcp_stream) {
    static_cast<void>(co_await async_sleep(std::chrono::nanoseconds::max()));
    auto nothing = [] {};
    co_await run_blocking(nothing);
}
task<result<>> report_the_stop(tcp_stream) {
    co_return co_await async_sleep(std::chrono::nanoseconds::max());
}

TEST_P(server_shutdown_test, a_refused_call_of_a_handler_that_is_cut_is_no_failure) {
    serve(call_a_pool_once_stopped, {.on_handler_exception = [](std::exception_ptr, void*) {
              ADD_FAILURE() << "an exception was reported";
          }});
    const auto peers = connect_open(3);

    EXPECT_EQ(shut_down(server(), 0ms).cut, 3U);

    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(server_shutdown_test, a_refused_call_of_a_handler_whose_loop_ends_is_no_failure) {
    serve(call_a_pool_once_stopped, {.on_handler_exception = [](std::exception_ptr, void*) {
              ADD_FAILURE() << "an exception was reported";
          }});
    const auto peers = connect_open(3);

    group_.reset();

    EXPECT_EQ(server().statistics().failed, 0U);
}

/// Not all that a stopped handler throws is the stop.
task<> fail_once_stopped(tcp_stream) {
    static_cast<void>(co_await async_sleep(std::chrono::nanoseconds::max()));
    throw std::system_error{std::make_error_code(std::errc::io_error)};
}

TEST_P(server_shutdown_test, another_exception_of_a_handler_that_is_cut_is_a_failure) {
    static std::atomic<int> reported;
    reported = 0;
    serve(fail_once_stopped,
          {.on_handler_exception = [](std::exception_ptr, void*) { ++reported; }});
    const auto peers = connect_open(3);

    EXPECT_EQ(shut_down(server(), 0ms).cut, 3U);

    EXPECT_EQ(server().statistics().failed, 3U);
    EXPECT_EQ(reported, 3);
}

TEST_P(server_shutdown_test, an_error_of_a_handler_whose_loop_ends_is_no_failure) {
    serve(report_the_stop);
    const auto peers = connect_open(3);

    group_.reset();

    EXPECT_EQ(server().statistics().failed, 0U);
}

TEST_P(server_shutdown_test, only_those_that_remain_are_cut) {
    std::atomic<int> number = 0;
    serve([&](tcp_stream stream) -> task<> {
        if (++number % 2 == 0) {
            co_await serve_until_stop(std::move(stream));
        } else {
            co_await serve_for_ever(std::move(stream));
        }
    });
    const auto peers = connect_open(10);

    server().request_shutdown(1h);
    EXPECT_TRUE(eventually([&] { return server().statistics().ended == 5; }));
    const shutdown_report report = shut_down(server(), 0s);

    EXPECT_EQ(report.drained, 5U);
    EXPECT_EQ(report.cut, 5U);
}

TEST_P(server_shutdown_test, a_later_call_shortens_the_grace_and_gets_the_same_report) {
    serve(serve_for_ever);
    const auto peers = connect_open(3);
    shutdown_report first;
    std::thread other{[&] { first = shut_down(server(), 1h); }};
    EXPECT_TRUE(eventually([&] { return !server().is_accepting(); }));

    const shutdown_report second = shut_down(server(), 0s);

    other.join();
    EXPECT_EQ(first.cut, 3U);
    EXPECT_EQ(second.cut, 3U);
    EXPECT_EQ(shut_down(server(), 1h).cut, 3U); // the same again
}

TEST_P(server_shutdown_test, nobody_gets_in_when_it_has_ended_accepting) {
    listen();
    EXPECT_FALSE(server().is_accepting());
    EXPECT_TRUE(server().serve(serve_for_ever));
    EXPECT_TRUE(server().is_accepting());
    const auto peers = connect_open(1);

    server().request_shutdown(1h);

    EXPECT_TRUE(eventually([&] { return !server().is_accepting(); }));
    EXPECT_EQ(server().statistics().open, 1U);
    EXPECT_EQ(connect_error(), std::errc::connection_refused);
    EXPECT_EQ(shut_down(server(), 0s).cut, 1U);
    EXPECT_FALSE(server().is_accepting());
}

TEST_P(server_shutdown_test, a_stop_of_the_awaiter_ends_the_grace) {
    serve(serve_for_ever);
    const auto peers = connect_open(3);

    simplenet::run(
        [](tcp_server& server) -> task<> {
            task<shutdown_report> whole = server.shutdown(1h);
            const auto report = co_await with_timeout(std::move(whole), 1ms);
            EXPECT_FALSE(report.has_value());
            EXPECT_EQ(server.statistics().open, 0U); // joined nevertheless
        }(server()),
        {.backend = GetParam()});
    EXPECT_EQ(shut_down(server(), 1h).cut, 3U);
}

TEST_P(server_shutdown_test, a_handler_that_shuts_down_is_not_waited_for) {
    std::atomic<bool> ended = false;
    serve([&](tcp_stream stream) -> task<> {
        std::array<std::byte, 1> buffer;
        const auto count = co_await stream.read_some(buffer);
        if (!count) co_return;
        const shutdown_report report = co_await server().shutdown(1h);
        EXPECT_EQ(report.drained, 1U);
        EXPECT_EQ(report.cut, 2U);
        const auto sent = co_await async_write_all(stream, "bye");
        EXPECT_TRUE(sent);
        ended = true;
    });
    auto peers = connect_open(3);
    peers[0].send("x");
    EXPECT_TRUE(eventually([&] { return !server().is_accepting(); }));
    server().request_shutdown(0s); // cuts the others

    EXPECT_EQ(peers[0].receive(3), "bye");
    EXPECT_TRUE(eventually([&] { return ended.load(); }));
}

TEST_P(server_shutdown_test, a_child_of_a_handler_may_shut_down) {
    serve([&](tcp_stream) -> task<> {
        task_group children;
        children.spawn([&]() -> task<> {
            const shutdown_report report = co_await server().shutdown(1h);
            EXPECT_EQ(report.drained, 1U);
        });
        static_cast<void>(co_await children.join());
    });
    auto peer = connect(at());
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(shut_down(server(), 1h).drained, 1U);
}

TEST_P(server_shutdown_test, may_be_requested_in_a_handler) {
    serve([&](tcp_stream stream) -> task<> {
        server().request_shutdown(1h);
        static_cast<void>(stream);
        EXPECT_TRUE(co_await server_stop());
    });
    auto peer = connect(at());
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(shut_down(server(), 1h).cut, 0U);
}

TEST_P(server_shutdown_test, whoever_is_in_the_backlog_is_served) {
    for (int round = 0; round < 20; ++round) {
        serve([](tcp_stream stream) -> task<> {
            static_cast<void>(co_await async_write_all(stream, "hello"));
            static_cast<void>(stream.shutdown_write());
            co_await wait_for_peer(std::move(stream));
        });
        auto peers = connect(at(), 30);

        server().request_shutdown(1h);

        for (auto& each : peers) {
            EXPECT_EQ(each.receive(5), "hello");
            each.close();
        }
        shut_down(server(), 1h);
        server_.reset();
    }
}

// --- destruction ---------------------------------------------------------------------------------

TEST_P(server_shutdown_test, the_destructor_cuts_everything) {
    serve(serve_for_ever);
    auto peers = connect_open(5);

    server_.reset();

    for (auto& each : peers)
        EXPECT_EQ(each.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(connect_error(), std::errc::connection_refused);
}

TEST_P(server_shutdown_test, the_destructor_also_cuts_a_handler_that_shut_down) {
    serve([&](tcp_stream stream) -> task<> {
        static_cast<void>(co_await server().shutdown(0s));
        co_await serve_for_ever(std::move(stream));
    });
    auto peer = connect(at());
    shut_down(server(), 1h);

    server_.reset();

    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(server_shutdown_test, destruction_on_a_thread_of_the_group_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    serve(echo);
    EXPECT_DEATH(
        {
            group()[0].post([this] { server_.reset(); });
            std::this_thread::sleep_for(10s);
        },
        "destroyed on a thread of its group");
}

TEST_P(server_shutdown_test, a_server_that_has_ended_may_be_destroyed_on_a_thread_of_the_group) {
    serve(echo);
    shut_down(server(), 0s);
    server_.reset();
    listen();
    shut_down(server(), 0s);

    std::atomic<bool> gone = false;
    group()[0].post([&] {
        server_.reset();
        gone = true;
    });
    EXPECT_TRUE(eventually([&] { return gone.load(); }));
}

TEST_P(server_shutdown_test, the_group_may_go_first) {
    serve(serve_for_ever);
    auto peers = connect_open(5);

    group_.reset();

    for (auto& each : peers)
        EXPECT_NE(each.receive_to_the_end(), std::error_code{});
    EXPECT_EQ(server().statistics().open, 0U);
    server().request_shutdown(1h);
    shut_down(server(), 1h);
}

TEST_P(server_shutdown_test, serving_after_the_end_of_the_group_is_a_violation) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            listen();
            group_.reset();
            static_cast<void>(server().serve(echo));
        },
        "event_loop_group of the server was destroyed");
}

TEST_P(server_shutdown_test, the_group_may_stop_before_the_server_serves) {
    listen();
    group().stop();
    EXPECT_TRUE(server().serve(echo));
    shut_down(server(), 1h);
}

TEST_P(server_shutdown_test, a_server_moves_while_it_serves) {
    serve(echo);
    auto peers = connect_open(2);
    tcp_server moved{std::move(server())};
    server_.reset();
    peers[0].send("x");
    EXPECT_EQ(peers[0].receive(1), "x");

    moved = or_throw(tcp_server::listen(group(), endpoint::loopback(0)));

    EXPECT_EQ(peers[1].receive_to_the_end(), errc::end_of_stream);
}

// --- server_stop ---------------------------------------------------------------------------------

TEST_P(server_shutdown_test, outside_of_a_server_nothing_stops) {
    simplenet::run(
        []() -> task<> {
            EXPECT_FALSE(co_await this_task::server_stopping());
            EXPECT_EQ(error_of(co_await with_timeout(server_stop(), 1ms)), errc::deadline_exceeded);
        }(),
        {.backend = GetParam()});
}

TEST_P(server_shutdown_test, children_of_a_handler_learn_of_the_shutdown) {
    serve([](tcp_stream) -> task<> {
        auto child = []() -> task<> {
            EXPECT_TRUE(co_await server_stop());
            EXPECT_TRUE(co_await this_task::server_stopping());
        };
        auto body = [child](task_group& group) -> task<> {
            group.spawn(child);
            group.spawn(child);
            co_return;
        };
        EXPECT_TRUE(co_await with_group(body));
    });
    const auto peers = connect_open(4);

    EXPECT_EQ(shut_down(server(), 1h).drained, 4U);
}

TEST_P(server_shutdown_test, a_handler_waits_for_a_request_or_the_shutdown) {
    serve([](tcp_stream stream) -> task<> {
        std::array<std::byte, 1> buffer;
        const auto first = co_await when_any(stream.read_some(buffer), server_stop());
        EXPECT_EQ(first.index, 1U);
    });
    const auto peers = connect_open(4);

    EXPECT_EQ(shut_down(server(), 1h).drained, 4U);
}

TEST_P(server_shutdown_test, server_stop_ends_with_its_limit) {
    serve([](tcp_stream) -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(server_stop(), 1ms)), errc::deadline_exceeded);
    });
    EXPECT_EQ(connect(at()).receive_to_the_end(), errc::end_of_stream);
}

// --- storms --------------------------------------------------------------------------------------

TEST_P(server_shutdown_test, shutdown_during_a_storm_of_connections) {
    for (int round = 0; round < 10; ++round) {
        serve([](tcp_stream stream) -> task<> { co_await echo(std::move(stream)); });
        std::atomic<bool> over = false;
        std::atomic<int> connected = 0;
        std::thread storm{[&] {
            while (!over) {
                auto made = blocking::tcp_stream::connect(at());
                if (made) ++connected;
            }
        }};
        EXPECT_TRUE(eventually([&] { return connected > 20; }));

        shut_down(server(), 1h);

        over = true;
        storm.join();
        const server_statistics end = server().statistics();
        EXPECT_EQ(end.open, 0U);
        EXPECT_EQ(end.accepted, end.ended);
        server_.reset();
    }
}

INSTANTIATE_TEST_SUITE_P(backends, server_shutdown_test,
                         ::testing::Values(backend::epoll, backend::io_uring),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
