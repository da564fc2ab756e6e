// Readiness of descriptors of every kind, and of those that other code uses or closes.

#include <simplenet/io/readiness.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"
#include "support/readiness_parts.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

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
using testing::beside;
using testing::checked;
using testing::make_pipe;
using testing::note;
using testing::put;
using testing::take;
using testing::turns;
using testing::wait_beside;

class readiness_descriptors_test : public testing::backend_test {};

// --- kinds of descriptors ------------------------------------------------------------------------

TEST_P(readiness_descriptors_test, events_timers_and_file_watches_wake_it) {
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

TEST_P(readiness_descriptors_test, the_end_of_a_process_wakes_it) {
    auto [out, in] = make_pipe();
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

TEST_P(readiness_descriptors_test, a_signal_wakes_it) {
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

TEST_P(readiness_descriptors_test, another_thread_wakes_a_loop_that_sleeps) {
    auto [out, in] = make_pipe();
    auto [back, back_in] = make_pipe();
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

// --- other users ---------------------------------------------------------------------------------

TEST_P(readiness_descriptors_test, a_foreign_epoll_is_not_disturbed) {
    auto [out, in] = make_pipe();
    const unique_fd theirs{checked(::epoll_create1(EPOLL_CLOEXEC))};
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 77}};
    checked(::epoll_ctl(theirs.get(), EPOLL_CTL_ADD, out.get(), &event));
    run([&]() -> task<> {
        beside waiting;
        beside nested;
        wait_beside(waiting, out.get());
        wait_beside(nested, theirs.get()); // an epoll instance is a descriptor like any other
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

TEST_P(readiness_descriptors_test, a_socket_of_the_loop_can_be_waited_for_beside_its_operations) {
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

TEST_P(readiness_descriptors_test, a_descriptor_that_was_waited_for_can_become_a_stream) {
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

TEST_P(readiness_descriptors_test, two_loops_wait_for_the_same_descriptor) {
    auto [out, in] = make_pipe();
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

TEST_P(readiness_descriptors_test, the_native_handle_of_a_loop_becomes_readable) {
    auto [out, in] = make_pipe();
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

TEST_P(readiness_descriptors_test, a_reused_number_refers_to_the_new_file) {
    run([&]() -> task<> {
        for (int round = 0; round < 50; ++round) {
            auto [out, in] = make_pipe();
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

TEST_P(readiness_descriptors_test, a_duplicate_of_a_closed_descriptor_wakes_no_waiter) {
    auto [out, in] = make_pipe();
    const int number = out.get();
    const unique_fd duplicate{checked(::fcntl(number, F_DUPFD_CLOEXEC, 0))};
    auto [second, second_in] = make_pipe();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(async_wait_readable(number), 1ms)),
                  errc::deadline_exceeded); // stopped: with epoll the registration remains
        checked(::dup3(second.get(), number, O_CLOEXEC));

        beside waiting;
        wait_beside(waiting, number);
        co_await turns(3);
        put(in); // the old file, to which only the duplicate refers
        co_await turns(5);
        EXPECT_FALSE(waiting.outcome);
        put(second_in);
        co_await std::move(waiting.task);
        EXPECT_TRUE(waiting.outcome.value());
    });
}

TEST_P(readiness_descriptors_test, a_wait_whose_descriptor_was_closed_never_sees_the_next_file) {
    auto [out, in] = make_pipe();
    auto [second, second_in] = make_pipe();
    const int number = out.get();
    run([&]() -> task<> {
        beside old;
        wait_beside(old, number);
        co_await turns(3);
        checked(::dup3(second.get(), number, O_CLOEXEC)); // closed, and the number reused at once
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

TEST_P(readiness_descriptors_test, a_wait_whose_descriptor_was_closed_still_stops) {
    auto [out, in] = make_pipe();
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

INSTANTIATE_TEST_SUITE_P(backends, readiness_descriptors_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
