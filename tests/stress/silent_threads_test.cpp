// Everything that waits for another thread, while that thread never answers: it is busy, or has
// ended its loop. A limit, a stop and the end of the waiting loop have to end the wait on their
// own.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/scripted_resolver.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iterator>
#include <stop_token>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::scripted_resolver;
using testing::turns;

/// The side that never answers.
struct silence {
    event_loop loop = or_throw(event_loop::create()); // never run
    scripted_resolver resolver;
    cross_channel<int> empty{1};
    cross_channel<int> full{1};
};

result<> without_value(const auto& outcome) {
    if (!outcome) return fail(outcome);
    return {};
}

task<result<>> call(silence& in) {
    auto function = []() -> result<> { return {}; };
    co_return co_await run_on(in.loop, function);
}
task<result<>> remote_task(silence& in) {
    auto function = []() -> task<result<>> { co_return result<>{}; };
    co_return co_await run_on(in.loop, function);
}
task<result<>> handle(silence& in) {
    auto function = []() -> task<result<>> { co_return result<>{}; };
    auto spawned = in.loop.spawn_remote(function);
    co_return co_await spawned;
}
task<result<>> lookup(silence& in) {
    static_cast<void>(in);
    co_return without_value(co_await async_resolve("host", 80));
}
task<result<>> receiving(silence& in) {
    co_return without_value(co_await in.empty.receive());
}
task<result<>> sending(silence& in) {
    static_cast<void>(in.full.try_send(1));
    co_return co_await in.full.send(2);
}
using waiting = task<result<>> (*)(silence&);
constexpr waiting all[] = {call, remote_task, handle, lookup, receiving, sending};

class silent_threads_test : public testing::backend_test {
protected:
    silence silent_;
};

TEST_P(silent_threads_test, a_limit_ends_every_wait) {
    run([&]() -> task<> {
        for (const waiting each : all) {
            EXPECT_EQ(error_of(co_await with_timeout(each(silent_), 1ms)), errc::deadline_exceeded);
        }
    });
}

TEST_P(silent_threads_test, a_stop_ends_every_wait) {
    run([&]() -> task<> {
        for (const waiting each : all) {
            auto waits = spawn(each(silent_));
            co_await turns(3);
            waits.request_stop();
            EXPECT_EQ(error_of(co_await waits), canceled);
        }
    });
}

TEST_P(silent_threads_test, a_stop_before_the_wait_ends_it) {
    run([&]() -> task<> {
        for (const waiting each : all) {
            auto waits = spawn(each(silent_));
            waits.request_stop();
            EXPECT_EQ(error_of(co_await waits), canceled);
        }
    });
}

TEST_P(silent_threads_test, a_token_ends_every_wait_from_a_third_thread) {
    run([&]() -> task<> {
        for (const waiting each : all) {
            std::stop_source source;
            const std::jthread asks{[&source] { source.request_stop(); }};
            EXPECT_EQ(error_of(co_await with_stop(source.get_token(), each(silent_))), canceled);
        }
    });
}

TEST_P(silent_threads_test, the_end_of_the_loop_ends_every_wait) {
    int ended = 0;
    auto count = [&](waiting each) -> task<> {
        EXPECT_EQ(error_of(co_await each(silent_)), canceled);
        ++ended;
    };
    for (const waiting each : all)
        loop().spawn(count(each));
    loop().run_for(1ms);

    destroy_loop();

    EXPECT_EQ(ended, static_cast<int>(std::size(all)));
}

INSTANTIATE_TEST_SUITE_P(backends, silent_threads_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
