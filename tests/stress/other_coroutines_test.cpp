// Everything that can be awaited, awaited by coroutines of another library: the loop counts each of
// these waits, waits for them, and ends them when it is destroyed.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/other_coroutines.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::eager_coroutine;

/// Events that the coroutines of a test wait for, and that never happen.
struct places {
    places()
        : pairs{*local_stream::pair(), *local_stream::pair(), *local_stream::pair()}
        , datagrams{*udp_socket::bind(endpoint::loopback(0)),
                    *udp_socket::bind(endpoint::loopback(0)),
                    *udp_socket::bind(endpoint::loopback(0))}
        , listeners{*tcp_listener::bind(endpoint::loopback(0)),
                    *tcp_listener::bind(endpoint::loopback(0)),
                    *tcp_listener::bind(endpoint::loopback(0))} {}

    local_stream& stream(std::size_t at) { return pairs[at].first; }

    std::array<std::pair<local_stream, local_stream>, 3> pairs;
    std::array<udp_socket, 3> datagrams;
    std::array<tcp_listener, 3> listeners;
    std::array<std::string, 3> texts{std::string(64, 0), std::string(64, 0), std::string(64, 0)};
    async_event event;
    async_semaphore semaphore{0};
    async_mutex mutex;
    std::optional<async_mutex::guard> locked = mutex.try_lock();
    channel<int> empty{1};
    std::array<oneshot<int>, 3> answers;
    cross_channel<int> crossing{1};
    std::stop_source stop;
    std::vector<join_handle<int>> children;
};

struct outcome {
    int ended = 0;
    int canceled = 0;

    template <class Result>
    void note(const Result& result) {
        ++ended;
        if constexpr (requires { result.error(); }) {
            if (!result && std::error_code{result.error()} == std::errc::operation_canceled) {
                ++canceled;
            }
        } else {
            ++canceled; // its result cannot report it
        }
    }
};

template <class Make>
eager_coroutine wait_once(outcome& to, places& at, std::size_t index, Make make) {
    to.note(co_await make(at, index));
}

struct wait_kind {
    const char* name;
    std::function<void(outcome&, places&, std::size_t)> begin;
};
template <class Make>
wait_kind kind(const char* name, Make make) {
    return {name,
            [make](outcome& to, places& at, std::size_t index) { wait_once(to, at, index, make); }};
}

task<result<>> sleep_long() {
    co_return co_await async_sleep(1h);
}

std::vector<wait_kind> all_kinds() {
    return {
        kind("read_some",
             [](places& at, std::size_t i) {
                 return at.stream(i).read_some(mutable_buffer{at.texts[i]});
             }),
        kind("receive", [](places& at, std::size_t i) { return at.stream(i).receive(); }),
        kind("async_read_exact",
             [](places& at, std::size_t i) {
                 return async_read_exact(at.stream(i), mutable_buffer{at.texts[i]});
             }),
        kind("async_read_until",
             [](places& at, std::size_t i) {
                 return async_read_until(at.stream(i), at.texts[i], "\n", 1000);
             }),
        kind("accept", [](places& at, std::size_t i) { return at.listeners[i].accept(); }),
        kind("receive_from",
             [](places& at, std::size_t i) {
                 return at.datagrams[i].receive_from(mutable_buffer{at.texts[i]});
             }),
        kind("async_wait_readable",
             [](places& at, std::size_t i) {
                 return async_wait_readable(at.stream(i).native_handle());
             }),
        kind("async_sleep", [](places&, std::size_t) { return async_sleep(1h); }),
        kind("async_sleep_until",
             [](places&, std::size_t) {
                 return async_sleep_until(std::chrono::steady_clock::now() + 1h);
             }),
        kind("event", [](places& at, std::size_t) { return at.event.wait(); }),
        kind("semaphore", [](places& at, std::size_t) { return at.semaphore.acquire(); }),
        kind("mutex", [](places& at, std::size_t) { return at.mutex.lock(); }),
        kind("channel", [](places& at, std::size_t) { return at.empty.receive(); }),
        kind("oneshot", [](places& at, std::size_t i) { return at.answers[i].receive(); }),
        kind("cross_channel", [](places& at, std::size_t) { return at.crossing.receive(); }),
        kind("task", [](places&, std::size_t) { return sleep_long(); }),
        kind("join",
             [](places& at, std::size_t) {
                 at.children.push_back(spawn(testing::stopped_or(1)));
                 return std::move(at.children.back()).operator co_await();
             }),
        kind("with_timeout of an operation",
             [](places& at, std::size_t i) {
                 return with_timeout(at.stream(i).read_some(mutable_buffer{at.texts[i]}), 1h);
             }),
        kind("with_timeout of a task",
             [](places&, std::size_t) { return with_timeout(sleep_long(), 1h); }),
        kind("with_stop",
             [](places& at, std::size_t) {
                 return with_stop(at.stop.get_token(), async_sleep(1h));
             }),
        kind("shield", [](places& at, std::size_t) { return shield(at.event.wait()); }),
        kind("when_all",
             [](places&, std::size_t) { return when_all(sleep_long(), async_sleep(1h)); }),
        kind("when_any",
             [](places& at, std::size_t) { return when_any(sleep_long(), at.event.wait()); }),
        kind("gather",
             [](places& at, std::size_t) { return gather(sleep_long(), at.event.wait()); }),
        kind("with_group",
             [](places&, std::size_t) {
                 return with_group([](task_group& group) -> task<> {
                     group.spawn(sleep_long());
                     co_return;
                 });
             }),
    };
}

class other_coroutines_test : public testing::backend_test {};

// If the loop knew only one of several waits, run() would end too early, and its destructor would
// hang or leave waits behind.
TEST_P(other_coroutines_test, the_loop_counts_each_wait_and_ends_it) {
    destroy_loop();
    const auto before = testing::resources::now();
    for (const wait_kind& each : all_kinds()) {
        const ::testing::ScopedTrace where{__FILE__, __LINE__, each.name};
        remake_loop();
        if (IsSkipped()) return;
        outcome got;
        {
            places at;
            loop().post([&] {
                for (std::size_t i = 0; i < 3; ++i)
                    each.begin(got, at, i);
            });
            for (int turn = 0; turn < 4; ++turn)
                loop().poll();
            EXPECT_FALSE(loop().run_for(0s)) << "they wait";
            EXPECT_GE(loop().metrics().live_tasks, 3U);
            EXPECT_EQ(got.ended, 0);
            destroy_loop();
        }
        EXPECT_EQ(got.ended, 3);
        EXPECT_EQ(got.canceled, 3);
        testing::expect_nothing_left(before);
        if (HasFailure()) return;
    }
}

eager_coroutine answer(local_stream stream, int& answered) {
    std::string byte(1, '\0');
    while (co_await stream.read_some(byte)) {
        if (!co_await async_write_all(stream, byte)) co_return;
        ++answered;
    }
}

TEST_P(other_coroutines_test, run_goes_on_until_the_last_of_them_has_ended) {
    int answered = 0;
    loop().post([&] {
        for (int i = 0; i < 3; ++i) {
            auto [ours, theirs] = *local_stream::pair();
            answer(std::move(ours), answered);
            [](local_stream stream) -> eager_coroutine {
                std::string byte(1, 'x');
                for (int round = 0; round < 100; ++round) {
                    if (!co_await async_write_all(stream, byte)) co_return;
                    if (!co_await with_timeout(stream.read_some(byte), testing::test_limit))
                        co_return;
                }
            }(std::move(theirs));
        }
    });

    EXPECT_TRUE(loop().run_for(testing::test_limit));

    EXPECT_EQ(answered, 300);
    EXPECT_EQ(loop().metrics().live_tasks, 0U);
}

INSTANTIATE_TEST_SUITE_P(backends, other_coroutines_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
