// A process that is stopped (SIGSTOP, a debugger, a paused virtual machine) and continues after all
// its timeouts have passed: data that arrived during the pause beats them.

#include "support/backend_test.hpp"
#include "support/child_process.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/full_form.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::short_or_full;

/// The operation with which the child waits.
enum class waiting : std::uint8_t {
    read_some,
    receive,
    read_exact,
    task,         // two reads under one limit
    idle_timeout, // of the stream itself
    accept,
    count_of_them,
};

class paused_process_test : public testing::own_loops_test {
protected:
    using errors = std::map<std::string, int>;

    template <class Stream>
    static task<> wait_for_four(Stream& stream, waiting how, std::chrono::milliseconds limit,
                                int& begun, errors& seen) {
        std::array<char, 4> four;
        std::error_code error;
        ++begun;
        switch (how) {
        case waiting::read_some:
            error = error_of(co_await with_timeout(stream.read_some(four), limit));
            break;
        case waiting::receive:
            error = error_of(co_await with_timeout(stream.receive(), limit));
            break;
        case waiting::read_exact:
            error = error_of(co_await with_timeout(async_read_exact(stream, four), limit));
            break;
        case waiting::task:
            error = error_of(co_await with_timeout(read_twice(stream), limit));
            break;
        default:
            stream.set_idle_timeout(limit);
            error = error_of(co_await stream.read_some(four));
        }
        if (error) ++seen[error.message()];
    }
    template <class Stream>
    static task<result<>> read_twice(Stream& stream) {
        std::array<char, 2> two;
        for (int half = 0; half < 2; ++half) {
            const auto count = co_await async_read_exact(stream, two);
            if (!count) co_return fail(count);
        }
        co_return result<>{};
    }
    static task<> wait_for_connection(tcp_listener& listener, std::chrono::milliseconds limit,
                                      int& begun, errors& seen) {
        ++begun;
        const auto stream = co_await with_timeout(listener.accept(), limit);
        if (!stream) ++seen[stream.error().message()];
    }

    /// The whole life of the child; returns the number of failed waits.
    template <class Stream>
    static int wait_in_child(backend on, std::vector<Stream>& streams, tcp_listener& listener,
                             waiting how, std::chrono::milliseconds limit, testing::raw_peer& to) {
        auto loop = or_throw(event_loop::create({.backend = on}));
        int begun = 0;
        errors seen;
        const bool accepts = how == waiting::accept;
        if (accepts) loop.spawn(wait_for_connection(listener, limit, begun, seen));
        for (Stream& each : streams)
            if (!accepts) loop.spawn(wait_for_four(each, how, limit, begun, seen));
        const int all = accepts ? 1 : static_cast<int>(streams.size());
        loop.spawn(say_when_all_wait(begun, all, to));
        loop.run();
        int failed = 0;
        for (const auto& [words, count] : seen) {
            std::fprintf(stderr, "%d of %d: %s\n", count, all, words.c_str());
            failed += count;
        }
        return std::min(failed, 100);
    }
    static task<> say_when_all_wait(const int& begun, int all, testing::raw_peer& to) {
        co_await testing::until([&] { return begun == all; });
        co_await testing::turns(5); // until submitted, with their timers in the wheel
        to.send("!");
    }

    template <class Stream>
    void pause(waiting how, const std::function<testing::raw_connection<Stream>()>& connect) {
        const auto limit = short_or_full<std::chrono::milliseconds>(600ms, 20'000ms);
        const auto paused = short_or_full<std::chrono::milliseconds>(700ms, 30'000ms);
        const int many = short_or_full(300, 1000); // fewer than the receive buffers
        for (int attempt = 0; attempt < 5; ++attempt) {
            std::vector<Stream> streams;
            std::vector<testing::raw_peer> peers;
            for (int each = 0; each < many; ++each) {
                auto [ours, theirs] = connect();
                streams.push_back(std::move(ours));
                peers.push_back(std::move(theirs));
            }
            auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
            auto [one, other] = testing::local_ends();
            testing::raw_peer told{std::move(one)};
            testing::raw_peer tells{std::move(other)};
            testing::child_process child{
                [&] { return wait_in_child(GetParam(), streams, listener, how, limit, tells); }};

            const auto started = std::chrono::steady_clock::now();
            ASSERT_EQ(told.receive(1), "!");
            child.send(SIGSTOP);
            child.wait_until_stopped();
            // If some have ended already, this machine is too busy: try again.
            if (std::chrono::steady_clock::now() - started > limit * 2 / 3) continue;
            for (auto& each : peers)
                each.send("four");
            std::optional<blocking::tcp_stream> client;
            if (how == waiting::accept) {
                client.emplace(
                    or_throw(blocking::tcp_stream::connect(or_throw(listener.local_endpoint()))));
            }
            std::this_thread::sleep_for(paused); // the time really has to pass
            child.send(SIGCONT);
            EXPECT_EQ(child.end(), "status 0") << "of " << many;
            testing::report_figures(std::to_string(many) + " waits of " +
                                    std::to_string(limit.count()) + " ms, paused for " +
                                    std::to_string(paused.count()) + " ms");
            return;
        }
        GTEST_SKIP() << "this machine is too busy to pause a process in time";
    }
    void pause_tcp(waiting how) {
        pause<tcp_stream>(how, [] { return testing::connect_raw(); });
    }

private:
    testing::watchdog watchdog_;
};

TEST_P(paused_process_test, read_some_finds_bytes_that_arrived_during_the_pause) {
    pause_tcp(waiting::read_some);
}
TEST_P(paused_process_test, receive_finds_bytes_that_arrived_during_the_pause) {
    pause_tcp(waiting::receive);
}
TEST_P(paused_process_test, read_exact_finds_bytes_that_arrived_during_the_pause) {
    pause_tcp(waiting::read_exact);
}
TEST_P(paused_process_test, a_task_finds_bytes_that_arrived_during_the_pause) {
    pause_tcp(waiting::task);
}
TEST_P(paused_process_test, a_stream_is_not_idle_when_bytes_arrived_during_the_pause) {
    pause_tcp(waiting::idle_timeout);
}
TEST_P(paused_process_test, accept_finds_a_connection_that_arrived_during_the_pause) {
    pause_tcp(waiting::accept);
}
TEST_P(paused_process_test, a_local_stream_finds_bytes_that_arrived_during_the_pause) {
    pause<local_stream>(waiting::read_some, [] { return testing::connect_raw_local(); });
}

INSTANTIATE_TEST_SUITE_P(backends, paused_process_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
