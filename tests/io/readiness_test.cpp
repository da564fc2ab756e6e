#include <simplenet/io/readiness.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::checked;
using testing::local_ends;
using testing::next_event;
using testing::turns;

class readiness_test : public testing::backend_test {};

struct pipe_ends {
    unique_fd out;
    unique_fd in;
};
pipe_ends open_pipe() {
    std::array<int, 2> fds{};
    checked(::pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK));
    return {unique_fd{fds[0]}, unique_fd{fds[1]}};
}
void put(const unique_fd& into, std::string_view text = "x") {
    EXPECT_EQ(::write(into.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}
void take(const unique_fd& from) {
    std::array<char, 65536> scratch;
    EXPECT_GT(::read(from.get(), scratch.data(), scratch.size()), 0);
}
void fill(const unique_fd& into) {
    const std::string block(65536, 'x');
    while (::write(into.get(), block.data(), block.size()) > 0) {
    }
}

/// A wait that runs beside the test and notes its end.
struct beside {
    std::optional<result<>> outcome;
    join_handle<> task;
};
task<> note(std::optional<result<>>& into, int fd, bool writes) {
    if (writes) {
        into = co_await async_wait_writable(fd);
    } else {
        into = co_await async_wait_readable(fd);
    }
}
void wait_beside(beside& waiting, int fd, bool writes = false) {
    waiting.task = spawn(note(waiting.outcome, fd, writes));
}

// --- what it waits for ---------------------------------------------------------------------------

TEST_P(readiness_test, a_wait_lasts_until_there_is_something_to_read) {
    auto [out, in] = open_pipe();
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
    auto [out, in] = open_pipe();
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

TEST_P(readiness_test, what_is_ready_ends_every_wait_until_it_is_read) {
    auto [out, in] = open_pipe();
    put(in);
    run([&]() -> task<> {
        for (int round = 0; round < 100; ++round)
            EXPECT_TRUE(co_await async_wait_readable(out.get()));

        take(out);
        EXPECT_EQ(error_of(co_await with_timeout(async_wait_readable(out.get()), 1ms)),
                  errc::deadline_exceeded);
    });
}

TEST_P(readiness_test, a_peer_that_is_gone_is_ready_both_ways) {
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

TEST_P(readiness_test, both_directions_are_waited_for_at_once_and_end_each_by_itself) {
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

TEST_P(readiness_test, everybody_who_waits_for_a_descriptor_is_told) {
    auto [out, in] = open_pipe();
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

TEST_P(readiness_test, a_number_that_is_no_descriptor_is_refused) {
    auto [out, in] = open_pipe();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_wait_writable(in.get())); // the loop has made what it needs
        const int closed = out.get();
        out.reset();
        for (const int bad : {-1, std::numeric_limits<int>::min(), closed,
                              std::numeric_limits<int>::max(), 1'000'000}) {
            EXPECT_EQ(error_of(co_await async_wait_readable(bad)), std::errc::bad_file_descriptor);
            EXPECT_EQ(error_of(co_await async_wait_writable(bad)), std::errc::bad_file_descriptor);
        }
    });
}

// --- what other programs wait for ----------------------------------------------------------------

TEST_P(readiness_test, events_timers_and_file_watches_wake_it) {
    const testing::temporary_directory place;
    const unique_fd event{checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
    const unique_fd timer{checked(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))};
    const unique_fd watch{checked(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK))};
    checked(::inotify_add_watch(watch.get(), (place / "").c_str(), IN_CREATE));
    run([&]() -> task<> {
        std::array<beside, 3> waiting;
        wait_beside(waiting[0], event.get());
        wait_beside(waiting[1], timer.get());
        wait_beside(waiting[2], watch.get());
        co_await turns(5);
        for (const beside& each : waiting)
            EXPECT_FALSE(each.outcome);

        const std::uint64_t one = 1;
        EXPECT_EQ(::write(event.get(), &one, sizeof one), 8);
        const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1000}};
        checked(::timerfd_settime(timer.get(), 0, &soon, nullptr));
        const unique_fd made{
            checked(::open((place / "new").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600))};
        for (beside& each : waiting) {
            co_await std::move(each.task);
            EXPECT_TRUE(each.outcome.value());
        }
    });
}

TEST_P(readiness_test, the_end_of_a_process_wakes_it) {
    auto [out, in] = open_pipe();
    const pid_t child = checked(::fork());
    if (child == 0) {
        char byte = 0;
        ::fcntl(out.get(), F_SETFL, 0);
        in.reset();
        static_cast<void>(!::read(out.get(), &byte, 1));
        ::_exit(7);
    }
    const unique_fd process{static_cast<int>(checked(::syscall(SYS_pidfd_open, child, 0)))};
    run([&]() -> task<> {
        beside waiting;
        wait_beside(waiting, process.get());
        co_await turns(5);
        EXPECT_FALSE(waiting.outcome);
        put(in);
        co_await std::move(waiting.task);
        EXPECT_TRUE(waiting.outcome.value());
    });
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_P(readiness_test, a_signal_wakes_it) {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigset_t before;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
    const unique_fd signals{checked(::signalfd(-1, &usr1, SFD_CLOEXEC | SFD_NONBLOCK))};
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            beside waiting;
            wait_beside(waiting, signals.get());
            co_await turns(5);
            EXPECT_FALSE(waiting.outcome);
            ::raise(SIGUSR1);
            co_await std::move(waiting.task);
            EXPECT_TRUE(waiting.outcome.value());
            signalfd_siginfo info{};
            EXPECT_EQ(::read(signals.get(), &info, sizeof info), ssize_t{sizeof info});
        }
    });
    EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

TEST_P(readiness_test, another_thread_wakes_a_loop_that_sleeps) {
    auto [out, in] = open_pipe();
    auto [back, back_in] = open_pipe();
    std::thread other{[&] {
        for (int round = 0; round < 1000; ++round) {
            testing::await(back.get(), POLLIN);
            take(back);
            put(in);
        }
    }};
    run([&]() -> task<> {
        for (int round = 0; round < 1000; ++round) {
            put(back_in);
            EXPECT_TRUE(co_await async_wait_readable(out.get()));
            take(out);
        }
    });
    other.join();
}

// --- beside others -------------------------------------------------------------------------------

TEST_P(readiness_test, somebody_elses_epoll_is_not_disturbed) {
    auto [out, in] = open_pipe();
    const unique_fd theirs{checked(::epoll_create1(EPOLL_CLOEXEC))};
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 77}};
    checked(::epoll_ctl(theirs.get(), EPOLL_CTL_ADD, out.get(), &event));
    run([&]() -> task<> {
        beside waiting;
        beside nested;
        wait_beside(waiting, out.get());
        wait_beside(nested, theirs.get()); // their epoll is a descriptor like another
        co_await turns(5);
        put(in);
        co_await std::move(waiting.task);
        co_await std::move(nested.task);
        EXPECT_TRUE(waiting.outcome.value());
        EXPECT_TRUE(nested.outcome.value());

        epoll_event seen{};
        EXPECT_EQ(::epoll_wait(theirs.get(), &seen, 1, 0), 1);
        EXPECT_EQ(seen.data.u64, 77U);
    });
}

TEST_P(readiness_test, a_socket_of_the_loop_can_be_waited_for_beside_its_operations) {
    auto [ours, theirs] = testing::connect_raw();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_wait_writable(ours.native_handle())); // before its first use
        std::array<std::byte, 8> buffer;
        beside reading;
        auto read = spawn([&]() -> task<> { EXPECT_TRUE(co_await ours.read_some(buffer)); });
        co_await turns(5);
        EXPECT_TRUE(co_await async_wait_writable(ours.native_handle()));
        theirs.send("x");
        co_await read;
        EXPECT_TRUE(co_await ours.write_some("y"));
        EXPECT_TRUE(co_await async_wait_writable(ours.native_handle()));
        EXPECT_EQ(theirs.receive(1), "y");
    });
}

TEST_P(readiness_test, a_descriptor_that_was_waited_for_can_become_a_stream) {
    auto [fd, other] = testing::tcp_ends();
    testing::raw_peer theirs{std::move(other)};
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_wait_writable(fd.get()));
        tcp_stream ours = testing::make_tcp_stream(std::move(fd));
        theirs.send("x");
        std::array<std::byte, 8> buffer;
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 1U);
        EXPECT_EQ(error_of(co_await with_timeout(ours.read_some(buffer), 1ms)),
                  errc::deadline_exceeded);
        theirs.send("yz");
        EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 2U);
    });
}

TEST_P(readiness_test, two_loops_wait_for_the_same_descriptor) {
    auto [out, in] = open_pipe();
    auto second = or_throw(event_loop::create({.backend = GetParam()}));
    bool told = false;
    auto waiting = second.spawn([](int fd, bool& flag) -> task<> {
        EXPECT_TRUE(co_await async_wait_readable(fd));
        flag = true;
    }(out.get(), told));
    second.poll();
    run([&]() -> task<> {
        beside here;
        wait_beside(here, out.get());
        co_await turns(3);
        put(in);
        co_await std::move(here.task);
        EXPECT_TRUE(here.outcome.value());
    });
    EXPECT_TRUE(second.run_for(testing::test_limit));
    EXPECT_TRUE(told);
}

TEST_P(readiness_test, a_loop_inside_another_program_announces_it) {
    auto [out, in] = open_pipe();
    beside waiting;
    loop().spawn(note(waiting.outcome, out.get(), false)).detach();
    const int handle = loop().native_handle();
    for (int round = 0; round < 5; ++round)
        loop().poll();
    EXPECT_FALSE(waiting.outcome);

    put(in);
    testing::await(handle, POLLIN);
    while (!waiting.outcome) {
        testing::await(handle, POLLIN);
        loop().poll();
    }

    EXPECT_TRUE(waiting.outcome.value());
}

// --- descriptors that are closed -----------------------------------------------------------------

TEST_P(readiness_test, a_number_that_is_used_again_at_once_means_the_new_file) {
    run([&]() -> task<> {
        for (int round = 0; round < 50; ++round) {
            auto [out, in] = open_pipe();
            beside waiting;
            wait_beside(waiting, out.get());
            co_await turns(2);
            EXPECT_FALSE(waiting.outcome);
            put(in);
            co_await std::move(waiting.task);
            EXPECT_TRUE(waiting.outcome.value());
        }
    });
}

TEST_P(readiness_test, a_duplicate_of_a_closed_descriptor_wakes_nobody) {
    auto [out, in] = open_pipe();
    const int number = out.get();
    const unique_fd duplicate{checked(::fcntl(number, F_DUPFD_CLOEXEC, 0))};
    auto [second, second_in] = open_pipe();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(async_wait_readable(number), 1ms)),
                  errc::deadline_exceeded); // stopped: with epoll the registration remains
        checked(::dup3(second.get(), number, O_CLOEXEC));

        beside waiting;
        wait_beside(waiting, number);
        co_await turns(3);
        put(in); // the old file, which only the duplicate means
        co_await turns(5);
        EXPECT_FALSE(waiting.outcome);
        put(second_in);
        co_await std::move(waiting.task);
        EXPECT_TRUE(waiting.outcome.value());
    });
}

TEST_P(readiness_test, a_wait_whose_descriptor_was_closed_never_sees_the_next_file) {
    auto [out, in] = open_pipe();
    auto [second, second_in] = open_pipe();
    const int number = out.get();
    run([&]() -> task<> {
        beside old;
        wait_beside(old, number);
        co_await turns(3);
        checked(::dup3(second.get(), number, O_CLOEXEC)); // closed, and used again at once
        beside now;
        wait_beside(now, number);
        put(second_in);
        co_await std::move(now.task);
        EXPECT_TRUE(now.outcome.value());
        co_await turns(5);

        old.task.request_stop();
        co_await std::move(old.task);
        const auto error = error_of(old.outcome.value());
        EXPECT_TRUE(error == canceled || error == std::errc::bad_file_descriptor) << error;
    });
}

TEST_P(readiness_test, a_wait_whose_descriptor_was_closed_still_stops) {
    auto [out, in] = open_pipe();
    run([&]() -> task<> {
        beside waiting;
        wait_beside(waiting, out.get());
        co_await turns(3);
        out.reset();
        co_await turns(3);
        waiting.task.request_stop();
        co_await std::move(waiting.task);
        EXPECT_EQ(error_of(waiting.outcome.value()), canceled);
    });
}

// --- stops and deadlines -------------------------------------------------------------------------

TEST_P(readiness_test, a_stop_ends_a_wait_and_takes_nothing) {
    auto [out, in] = open_pipe();
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

        put(theirs); // an event that nobody waits for any more, and that one-shot watches spend
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
    auto [out, in] = open_pipe();
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

TEST_P(readiness_test, what_is_ready_beats_a_deadline) {
    auto [out, in] = open_pipe();
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

        // It comes after the wait began, and is there when the loop looks after the limit.
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

TEST_P(readiness_test, a_stop_from_another_thread_reaches_it) {
    auto [out, in] = open_pipe();
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
            auto [out, in] = open_pipe();
            beside waiting;
            wait_beside(waiting, out.get());
            co_await turns(round % 3);
            if (round % 2 == 0) put(in);
            waiting.task.request_stop();
            if (round % 2 == 1) put(in);
            co_await std::move(waiting.task);
            EXPECT_TRUE(*waiting.outcome || error_of(*waiting.outcome) == canceled);
            // Level-triggered: whoever was told nothing is told by the next wait.
            EXPECT_TRUE(co_await async_wait_readable(out.get()));
        }
    });
}

TEST_P(readiness_test, the_first_of_several_descriptors_is_waited_for) {
    auto [first, first_in] = open_pipe();
    auto [second, second_in] = open_pipe();
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
    std::vector<pipe_ends> pipes;
    std::vector<std::error_code> ends;
    for (int count = 0; count < 10; ++count) {
        pipes.push_back(open_pipe());
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

TEST_P(readiness_test, a_task_that_waits_for_ever_does_not_keep_a_loop_from_its_end) {
    auto [out, in] = open_pipe();
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
    auto [out, in] = open_pipe();
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

TEST_P(readiness_test, a_process_without_descriptors_gets_an_error_or_waits) {
    auto [out, in] = open_pipe();
    put(in);
    run([&]() -> task<> {
        result<> outcome;
        {
            const testing::descriptor_limit none{0};
            outcome = co_await async_wait_readable(out.get());
        }
        EXPECT_TRUE(outcome || error_of(outcome) == std::errc::too_many_files_open);
        EXPECT_TRUE(co_await async_wait_readable(out.get())); // and works again
    });
}

INSTANTIATE_TEST_SUITE_P(backends, readiness_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
