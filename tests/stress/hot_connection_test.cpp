// One connection at full speed beside a hundred that ping: the pings are answered in time.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/full_form.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::short_or_full;

using latencies = std::vector<std::chrono::nanoseconds>;

/// Sends `pings` pings over each of `peers`, over all of them at once; returns the latencies.
latencies ping(std::vector<testing::raw_peer>& peers, int pings) {
    struct pinger {
        std::chrono::steady_clock::time_point sent;
        int left;
    };
    latencies all;
    std::vector<pinger> state(peers.size());
    std::vector<pollfd> waiting;
    for (std::size_t each = 0; each < peers.size(); ++each) {
        waiting.push_back({.fd = peers[each].fd(), .events = POLLIN, .revents = 0});
        state[each] = {.sent = std::chrono::steady_clock::now(), .left = pings};
        peers[each].send("ping");
    }
    for (std::size_t active = peers.size(); active != 0;) {
        if (::poll(waiting.data(), waiting.size(), 20'000) <= 0) break;
        for (std::size_t each = 0; each < peers.size(); ++each) {
            if (waiting[each].revents == 0) continue;
            if (peers[each].receive(4) != "ping") return all;
            const auto now = std::chrono::steady_clock::now();
            all.push_back(now - state[each].sent);
            if (--state[each].left == 0) {
                waiting[each].fd = -1;
                --active;
                continue;
            }
            state[each].sent = now;
            peers[each].send("ping");
        }
    }
    return all;
}

class hot_connection_test : public testing::backend_test {
protected:
    static task<> echo(tcp_stream& stream) {
        while (auto bytes = co_await stream.receive()) {
            const auto sent = co_await async_write_all(stream, *bytes);
            if (!sent) break;
        }
    }
    static task<> swallow(tcp_stream& stream, std::uint64_t& bytes) {
        while (auto some = co_await stream.receive())
            bytes += some->size();
    }
};

TEST_P(hot_connection_test, a_hundred_others_are_answered_in_time) {
    const std::size_t pingers = short_or_full<std::size_t>(20, 100);
    const int pings = short_or_full(50, 2000);
    auto [hot, source] = testing::connect_raw();
    std::vector<tcp_stream> streams;
    std::vector<testing::raw_peer> peers;
    for (std::size_t each = 0; each < pingers; ++each) {
        auto [ours, theirs] = testing::connect_raw();
        streams.push_back(std::move(ours));
        peers.push_back(std::move(theirs));
    }
    std::atomic<bool> over = false;
    std::uint64_t swallowed = 0;
    latencies measured;
    // Without a pause: there is always something to read.
    std::jthread flooding{[&] {
        const std::string block(256 * 1024, 'x');
        while (!over.load())
            ::send(source.fd(), block.data(), block.size(), MSG_NOSIGNAL);
        source.shutdown_write();
    }};
    std::jthread pinging{[&] {
        measured = ping(peers, pings);
        over.store(true);
        for (auto& each : peers)
            each.shutdown_write();
    }};
    const auto start = std::chrono::steady_clock::now();
    run(
        [&]() -> task<> {
            task_group all;
            all.spawn(swallow(hot, swallowed));
            for (auto& each : streams)
                all.spawn(echo(each));
            static_cast<void>(co_await all.join());
        },
        std::max<std::chrono::seconds>(testing::test_limit, 45s));
    const auto passed = std::chrono::steady_clock::now() - start;
    over.store(true);
    if (HasFailure()) ::shutdown(source.fd(), SHUT_RDWR);
    pinging.join();
    flooding.join();

    ASSERT_EQ(measured.size(), pingers * static_cast<std::size_t>(pings));
    std::sort(measured.begin(), measured.end());
    const auto us = [](std::chrono::nanoseconds time) {
        return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
    };
    const auto p99 = measured[measured.size() * 99 / 100];
    if (testing::full_form()) { // on an otherwise idle machine
        EXPECT_LT(p99, 250ms * testing::patience);
    }
    EXPECT_GT(swallowed, 0U);
    testing::report_figures(std::to_string(measured.size()) + " pings of " +
                            std::to_string(pingers) + ": median " +
                            us(measured[measured.size() / 2]) + " us, p99 " + us(p99) +
                            " us, longest " + us(measured.back()) + " us; beside them " +
                            std::to_string(swallowed >> 20U) + " MiB in " + us(passed) + " us");
}

INSTANTIATE_TEST_SUITE_P(backends, hot_connection_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
