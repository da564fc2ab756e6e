#include <simplenet/io/readiness.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"
#include "support/readiness_parts.hpp"
#include "support/temporary_directory.hpp"
#include "sys/seam.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::beside;
using testing::checked;
using testing::fill;
using testing::local_ends;
using testing::make_pipe;
using testing::pipe_pair;
using testing::put;
using testing::take;
using testing::turns;
using testing::wait_beside;

class readiness_test : public testing::backend_test {};

// --- events --------------------------------------------------------------------------------------

TEST_P(readiness_test, a_wait_lasts_until_there_is_something_to_read) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        beside waiting;
        wait_beside(waiting, out.get());
        co_await turns(5);
        EXPECT_FALSE(waiting.outcome);

        put(in);
        co_await std::move(waiting.task);

        EXPECT_TRUE(waiting.outcome.value());
    });
}

TEST_P(readiness_test, a_wait_lasts_until_there_is_room_to_write) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_wait_writable(in.get()));
        fill(in);
        beside waiting;
        wait_beside(waiting, in.get(), true);
        co_await turns(5);
        EXPECT_FALSE(waiting.outcome);

        take(out);
        co_await std::move(waiting.task);

        EXPECT_TRUE(waiting.outcome.value());
    });
}

TEST_P(readiness_test, a_ready_descriptor_ends_every_wait_until_it_is_read) {
    auto [out, in] = make_pipe();
    put(in);
    run([&]() -> task<> {
        for (int round = 0; round < 100; ++round)
            EXPECT_TRUE(co_await async_wait_readable(out.get()));

        take(out);
        EXPECT_EQ(error_of(co_await with_timeout(async_wait_readable(out.get()), 1ms)),
                  errc::deadline_exceeded);
    });
}

TEST_P(readiness_test, a_closed_peer_makes_both_directions_ready) {
    auto [ours, theirs] = local_ends();
    EXPECT_EQ(::fcntl(ours.get(), F_SETFL, O_NONBLOCK), 0);
    fill(ours);
    run([&]() -> task<> {
        beside reading;
        beside writing;
        wait_beside(reading, ours.get());
        wait_beside(writing, ours.get(), true);
        co_await turns(5);
        EXPECT_FALSE(reading.outcome || writing.outcome);

        theirs.reset();
        co_await std::move(reading.task);
        co_await std::move(writing.task);

        EXPECT_TRUE(reading.outcome.value());
        EXPECT_TRUE(writing.outcome.value());
    });
}

TEST_P(readiness_test, waits_for_both_directions_end_independently) {
    auto [ours, theirs] = local_ends();
    EXPECT_EQ(::fcntl(ours.get(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(::fcntl(theirs.get(), F_SETFL, O_NONBLOCK), 0);
    run([&]() -> task<> {
        for (const bool read_first : {true, false}) {
            fill(ours);
            beside reading;
            beside writing;
            wait_beside(reading, ours.get());
            wait_beside(writing, ours.get(), true);
            co_await turns(5);
            EXPECT_FALSE(reading.outcome || writing.outcome);

            beside& first = read_first ? reading : writing;
            beside& second = read_first ? writing : reading;
            const auto cause = [&](const beside& which) {
                if (&which == &reading) return put(theirs);
                std::array<char, 65536> scratch;
                while (::read(theirs.get(), scratch.data(), scratch.size()) > 0) {
                }
            };
            cause(first);
            co_await std::move(first.task);
            co_await turns(5);
            EXPECT_FALSE(second.outcome);
            cause(second);
            co_await std::move(second.task);

            EXPECT_TRUE(reading.outcome.value());
            EXPECT_TRUE(writing.outcome.value());
            take(ours);
        }
    });
}

TEST_P(readiness_test, a_ready_descriptor_wakes_all_its_waiters) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        std::array<beside, 10> waiting;
        for (beside& each : waiting)
            wait_beside(each, out.get());
        co_await turns(5);
        put(in);
        for (beside& each : waiting) {
            co_await std::move(each.task);
            EXPECT_TRUE(each.outcome.value());
        }
    });
}

TEST_P(readiness_test, files_and_directories_are_always_ready) {
    const testing::temporary_directory place;
    const unique_fd directory{checked(::open((place / "").c_str(), O_RDONLY | O_CLOEXEC))};
    const unique_fd file{
        checked(::open((place / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600))};
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            EXPECT_TRUE(co_await async_wait_readable(file.get()));
            EXPECT_TRUE(co_await async_wait_writable(file.get()));
            EXPECT_TRUE(co_await async_wait_readable(directory.get()));
        }
    });
}

TEST_P(readiness_test, a_bad_descriptor_is_refused) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_wait_writable(in.get())); // the loop allocates its resources
        const int closed = out.get();
        out.reset();
        for (const int bad : {-1, std::numeric_limits<int>::min(), closed,
                              std::numeric_limits<int>::max(), 1'000'000}) {
            EXPECT_EQ(error_of(co_await async_wait_readable(bad)), std::errc::bad_file_descriptor);
            EXPECT_EQ(error_of(co_await async_wait_writable(bad)), std::errc::bad_file_descriptor);
        }
    });
}

// --- stops and deadlines -------------------------------------------------------------------------

TEST_P(readiness_test, a_stop_ends_a_wait_and_consumes_nothing) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        for (int round = 0; round < 20; ++round) {
            beside waiting;
            wait_beside(waiting, out.get());
            co_await turns(round % 4);
            waiting.task.request_stop();
            waiting.task.request_stop();
            co_await std::move(waiting.task);
            EXPECT_EQ(error_of(waiting.outcome.value()), canceled);
        }
        put(in);
        EXPECT_TRUE(co_await async_wait_readable(out.get()));
    });
}

TEST_P(readiness_test, a_stop_of_one_wait_leaves_the_others_waiting) {
    auto [ours, theirs] = local_ends();
    EXPECT_EQ(::fcntl(ours.get(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(::fcntl(theirs.get(), F_SETFL, O_NONBLOCK), 0);
    fill(ours);
    run([&]() -> task<> {
        beside stopped;
        beside reading;
        beside writing;
        wait_beside(stopped, ours.get());
        wait_beside(reading, ours.get());
        wait_beside(writing, ours.get(), true);
        co_await turns(3);
        stopped.task.request_stop();
        co_await std::move(stopped.task);
        EXPECT_EQ(error_of(stopped.outcome.value()), canceled);
        reading.task.request_stop();
        co_await std::move(reading.task);

        put(theirs); // an event without a waiter, which uses up one-shot watches
        co_await turns(5);
        EXPECT_FALSE(writing.outcome);
        std::array<char, 65536> scratch;
        while (::read(theirs.get(), scratch.data(), scratch.size()) > 0) {
        }
        co_await std::move(writing.task);
        EXPECT_TRUE(writing.outcome.value());
    });
}

TEST_P(readiness_test, a_stopped_scope_refuses_every_wait) {
    auto [out, in] = make_pipe();
    put(in);
    run([&]() -> task<> {
        int refused = 0;
        auto child = spawn([&]() -> task<> {
            while (refused < 3)
                refused += error_of(co_await async_wait_readable(out.get())) == canceled;
        });
        child.request_stop();
        co_await child;
        EXPECT_EQ(refused, 3);
    });
}

TEST_P(readiness_test, readiness_beats_a_deadline) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        for (const auto limit : {0ns, -1ns, std::chrono::nanoseconds::min(), 1ns}) {
            EXPECT_EQ(error_of(co_await with_timeout(async_wait_readable(out.get()), limit)),
                      errc::deadline_exceeded);
        }
        put(in);
        for (const auto limit :
             {0ns, -1ns, std::chrono::nanoseconds::min(), std::chrono::nanoseconds::max()}) {
            EXPECT_TRUE(co_await with_timeout(async_wait_readable(out.get()), limit));
        }
        take(out);

        // The event occurs after the wait began, and is visible when the loop looks after the
        // limit.
        auto late = with_timeout(async_wait_readable(out.get()), 1ms);
        auto writing = spawn([&]() -> task<> {
            co_await turns(2);
            testing::pass(std::chrono::steady_clock::now() + 2ms);
            put(in);
        });
        EXPECT_TRUE(co_await std::move(late));
        co_await writing;
    });
}

TEST_P(readiness_test, a_stop_from_another_thread_ends_a_wait) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        std::stop_source source;
        std::thread other{[&] { source.request_stop(); }};
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), async_wait_readable(out.get()))),
                  canceled);
        other.join();
    });
}

TEST_P(readiness_test, success_and_stop_in_the_same_turn_end_it_once) {
    run([&]() -> task<> {
        for (int round = 0; round < 200; ++round) {
            auto [out, in] = make_pipe();
            beside waiting;
            wait_beside(waiting, out.get());
            co_await turns(round % 3);
            if (round % 2 == 0) put(in);
            waiting.task.request_stop();
            if (round % 2 == 1) put(in);
            co_await std::move(waiting.task);
            EXPECT_TRUE(*waiting.outcome || error_of(*waiting.outcome) == canceled);
            // Level-triggered: an event that one waiter has missed ends the next wait.
            EXPECT_TRUE(co_await async_wait_readable(out.get()));
        }
    });
}

TEST_P(readiness_test, the_first_of_several_descriptors_is_waited_for) {
    auto [first, first_in] = make_pipe();
    auto [second, second_in] = make_pipe();
    run([&]() -> task<> {
        put(second_in);
        auto [index, values] =
            co_await when_any(async_wait_readable(first.get()), async_wait_readable(second.get()));
        EXPECT_EQ(index, 1U);
        EXPECT_TRUE(std::get<1>(values).value());
        EXPECT_FALSE(std::get<0>(values));
    });
}

// --- the loop ------------------------------------------------------------------------------------

TEST_P(readiness_test, the_end_of_a_loop_ends_its_waits) {
    std::vector<pipe_pair> pipes;
    std::vector<std::error_code> ends;
    for (int count = 0; count < 10; ++count) {
        pipes.push_back(make_pipe());
        loop()
            .spawn([](int fd, std::vector<std::error_code>& into) -> task<> {
                into.push_back(error_of(co_await async_wait_readable(fd)));
            }(pipes.back().out.get(), ends))
            .detach();
    }
    for (int turn = 0; turn < 5; ++turn)
        loop().poll();
    EXPECT_EQ(loop().metrics().live_operations, 10U);

    destroy_loop();

    EXPECT_EQ(ends, std::vector<std::error_code>(10, std::make_error_code(canceled)));
}

TEST_P(readiness_test, a_task_that_waits_forever_does_not_keep_a_loop_from_ending) {
    auto [out, in] = make_pipe();
    loop()
        .spawn([](int fd) -> task<> {
            for (;;)
                static_cast<void>(co_await async_wait_readable(fd));
        }(out.get()))
        .detach();
    for (int turn = 0; turn < 5; ++turn)
        loop().poll();
    destroy_loop();
}

TEST_P(readiness_test, waits_are_counted_among_the_live_operations) {
    auto [out, in] = make_pipe();
    run([&]() -> task<> {
        beside waiting;
        wait_beside(waiting, out.get());
        co_await turns(3);
        EXPECT_EQ(loop().metrics().live_operations, 1U);
        put(in);
        co_await std::move(waiting.task);
        EXPECT_EQ(loop().metrics().live_operations, 0U);
    });
}

TEST_P(readiness_test, the_first_wait_needs_no_free_descriptor) {
    auto [out, in] = make_pipe();
    put(in);
    run([&]() -> task<> {
        const testing::descriptor_limit none{0};
        EXPECT_TRUE(co_await async_wait_readable(out.get()));
    });
}

#if SIMPLENET_SEAMS

/// The kernel has no memory to change a registration, once.
class short_of_memory_once final : public detail::sys::interceptor {
    long on_call(detail::sys::pending_call& call) noexcept override {
        const bool changes =
            call.which() == detail::sys::call::epoll_ctl && call.argument<int>(1) == EPOLL_CTL_MOD;
        if (!changes || done_) return call.make();
        done_ = true;
        return -ENOMEM;
    }
    bool done_ = false;
};

// What was registered still is after the failure: to register it again fails, too.
TEST_P(readiness_test, a_failed_change_of_a_registration_spoils_no_later_wait) {
    auto [out, in] = make_pipe();
    put(in);
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_wait_readable(out.get()));
        {
            short_of_memory_once failing;
            const detail::sys::intercepting now{failing};
            std::ignore = co_await async_wait_readable(out.get());
        }
        EXPECT_TRUE(co_await async_wait_readable(out.get()));
    });
}

#endif

INSTANTIATE_TEST_SUITE_P(backends, readiness_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
