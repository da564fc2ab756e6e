#include <simplenet/insight/dump_tasks.hpp>

#include <simplenet/coro/or_return.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/readiness.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/queued_writer.hpp>
#include <simplenet/stream/send_file.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/sync/async_mutex.hpp>
#include <simplenet/sync/async_semaphore.hpp>
#include <simplenet/sync/channel.hpp>
#include <simplenet/sync/oneshot.hpp>
#include <simplenet/threads/cross_channel.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <source_location>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class dump_tasks_test : public backend_test {
protected:
    [[nodiscard]] std::string dump() {
        std::ostringstream text;
        loop().dump_tasks(text);
        return text.str();
    }
};

TEST_P(dump_tasks_test, says_which_socket_a_task_waits_for) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto [ours, theirs] = connect_raw();
    auto [local, local_peer] = connect_raw_local();
    loop().spawn([&]() -> task<> { (void)co_await listener.accept(); });
    loop().spawn([&]() -> task<> {
        std::array<char, 8> buffer{};
        (void)co_await with_timeout(ours.read_some(buffer), 1h);
    });
    loop().spawn([&]() -> task<result<>> {
        std::array<char, 8> buffer{};
        co_await or_return(async_read_exact(local, buffer));
        co_return result<>{};
    });
    loop().run_for(1ms);

    const std::string text = dump();

    const auto fd = [](const auto& of) { return std::to_string(of.native_handle()); };
    EXPECT_THAT(text, HasSubstr("accept on fd " + fd(listener) + ", " +
                                listener.local_endpoint()->to_string() + "\n"));
    EXPECT_THAT(text, HasSubstr("read_some on fd " + fd(ours) + ", " +
                                ours.local_endpoint()->to_string() + " <-> " +
                                ours.remote_endpoint()->to_string() + "\n"));
    EXPECT_THAT(text, HasSubstr("async_read_exact on fd " + fd(local)));
    EXPECT_THAT(text, HasSubstr("3 tasks, 3 operations, 1 timers\n"));
    EXPECT_THAT(text, HasSubstr(to_string(GetParam())));
    EXPECT_THAT(text, HasSubstr("dump_tasks_test.cpp:"));
}

TEST_P(dump_tasks_test, says_what_the_caller_awaits) {
    auto [files, files_peer] = connect_raw_local({.ours = 4096, .theirs = 4096});
    auto [local, local_peer] = connect_raw_local({.ours = 4096, .theirs = 4096});
    const unique_fd file{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
    const std::string much(1 << 20, 'x');
    loop().spawn(
        [&]() -> task<> { (void)co_await async_send_file(files, file.get(), 0, 1 << 20); });
    loop().spawn([&]() -> task<> { (void)co_await local.send_descriptors(much, file.get()); });
    loop().spawn([&]() -> task<> {
        std::array<std::byte, 8> buffer{};
        (void)co_await local.receive_descriptors(buffer, 1);
    });
    loop().run_for(5ms);

    const std::string text = dump();

    EXPECT_THAT(text, HasSubstr("async_send_file on fd " + std::to_string(files.native_handle())));
    const std::string on_local = " on fd " + std::to_string(local.native_handle());
    EXPECT_THAT(text, HasSubstr(" send_descriptors" + on_local));
    EXPECT_THAT(text, HasSubstr("receive_descriptors" + on_local));
}

TEST_P(dump_tasks_test, shows_where_a_read_waits) {
    auto [some, some_peer] = connect_raw();
    auto [exact, exact_peer] = connect_raw();
    unsigned some_line = 0;
    unsigned exact_line = 0;
    loop().spawn([&]() -> task<> {
        std::array<char, 8> buffer{};
        some_line = std::source_location::current().line() + 1;
        (void)co_await some.read_some(buffer);
    });
    loop().spawn([&]() -> task<> {
        std::array<char, 8> buffer{};
        exact_line = std::source_location::current().line() + 1;
        (void)co_await async_read_exact(exact, buffer);
    });
    loop().run_for(1ms);

    const std::string text = dump();

    EXPECT_THAT(text, HasSubstr("dump_tasks_test.cpp:" + std::to_string(some_line) + "\n"));
    EXPECT_THAT(text, HasSubstr("dump_tasks_test.cpp:" + std::to_string(exact_line) + "\n"));
}

TEST_P(dump_tasks_test, says_which_foreign_descriptor_a_task_waits_for) {
    auto [out, in] = make_pipe();
    loop().spawn([&]() -> task<> { (void)co_await async_wait_readable(out.get()); });
    loop().spawn(
        [&]() -> task<> { (void)co_await with_timeout(async_wait_readable(out.get()), 1h); });
    loop().run_for(1ms);

    const std::string wait = "async_wait_readable on fd " + std::to_string(out.get()) + "\n";
    EXPECT_THAT(dump(), ContainsRegex(wait + "(.*\n)+.*" + wait));
}

TEST_P(dump_tasks_test, says_which_kind_of_thing_a_task_waits_for) {
    async_event event;
    async_mutex mutex;
    async_semaphore semaphore{0};
    channel<int> values{1};
    channel<int> full{0};
    cross_channel<int> crossing{1};
    oneshot<int> answer;
    auto [here, there] = duplex(4);
    auto [ours, theirs] = connect_raw();

    loop().spawn([&]() -> task<> { (void)co_await event.wait(); });
    loop().spawn([&]() -> task<> {
        auto held = co_await mutex.lock();
        (void)co_await mutex.lock();
    });
    loop().spawn([&]() -> task<> { (void)co_await semaphore.acquire(); });
    loop().spawn([&]() -> task<> { (void)co_await values.receive(); });
    loop().spawn([&]() -> task<> { (void)co_await full.send(1); });
    loop().spawn([&]() -> task<> { (void)co_await crossing.receive(); });
    loop().spawn([&]() -> task<> { (void)co_await answer.receive(); });
    loop().spawn([&]() -> task<> {
        std::array<char, 8> buffer;
        (void)co_await here.read_some(buffer);
    });
    loop().spawn([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        std::string much(8'000'000, 'x');
        (void)writer.enqueue(std::move(much));
        (void)co_await writer.flush();
    });
    loop().run_for(1ms);

    const std::string text = dump();
    for (const char* what :
         {"an async_event", "an async_mutex", "an async_semaphore", "a value from a channel",
          "room in a channel", "a value from a cross_channel", "the value of a oneshot",
          "bytes from a duplex", "a queued_writer"}) {
        EXPECT_THAT(text, HasSubstr(what));
    }
    EXPECT_THAT(text, Not(HasSubstr("simplenet::"))); // the name of a class tells a user nothing
    remake_loop(); // ends the tasks before the objects they wait for
}

TEST_P(dump_tasks_test, says_how_long_a_task_sleeps) {
    loop().spawn([]() -> task<> { (void)co_await async_sleep(100s); });
    loop().run_for(1ms);

    EXPECT_THAT(dump(), ContainsRegex("sleep for another (99|100)\\.[0-9]+ s\n"));
}

TEST_P(dump_tasks_test, shows_a_sleep_that_began_in_this_turn) {
    run([&]() -> task<> {
        auto sleeps = spawn([]() -> task<> { (void)co_await async_sleep(100s); });
        co_await yield();
        std::ostringstream text;
        dump_tasks(text);
        EXPECT_THAT(text.str(), ContainsRegex("sleep for another (99|100)\\.[0-9]+ s\n"));
        EXPECT_THAT(text.str(), HasSubstr("running\n"));
        sleeps.request_stop();
    });
}

TEST_P(dump_tasks_test, shows_the_age_of_a_task) {
    loop().spawn([]() -> task<> { (void)co_await async_sleep(1h); });
    loop().run_for(1ms);
    pass(std::chrono::steady_clock::now() + 20ms);

    EXPECT_THAT(dump(), ContainsRegex("#1, 0\\.(0[2-9]|[1-9])[0-9]+ s: sleep"));
}

TEST_P(dump_tasks_test, may_be_called_while_the_loop_is_destroyed) {
    auto [ours, theirs] = connect_raw();
    std::size_t printed = 0;
    struct looks_at_the_end {
        event_loop& loop;
        std::size_t& printed;
        ~looks_at_the_end() {
            std::ostringstream text;
            loop.dump_tasks(text);
            printed += text.str().size();
        }
    };
    for (int i = 0; i < 2; ++i) {
        loop().spawn([&, i]() -> task<> {
            const looks_at_the_end local{loop(), printed};
            std::array<char, 8> buffer{};
            // The first task ignores errors, and is destroyed at its await.
            do {
                if (i == 0)
                    (void)co_await ours.read_some(buffer);
                else
                    (void)co_await async_sleep(1h);
            } while (i == 0);
        });
    }
    loop().run_for(1ms);

    destroy_loop();

    EXPECT_GT(printed, 0U);
}

TEST_P(dump_tasks_test, prints_when_its_signal_comes) {
    remake_loop({.dump_signal = SIGUSR1});
    CaptureStderr();

    run([]() -> task<> {
        this_task::set_name("waits for a signal");
        ::kill(::getpid(), SIGUSR1);
        co_await yield();
        co_await yield();
    });

    EXPECT_THAT(GetCapturedStderr(), HasSubstr("waits for a signal"));
}

TEST_P(dump_tasks_test, every_sleeping_loop_prints_when_their_signal_comes) {
    CaptureStderr();
    {
        background_loop one{{.backend = GetParam(), .dump_signal = SIGUSR2}};
        background_loop two{{.backend = GetParam(), .dump_signal = SIGUSR2}};
        for (int i = 0; i < 100; ++i)
            ::kill(::getpid(), SIGUSR2);
    }
    const std::string text = GetCapturedStderr();
    EXPECT_THAT(text, HasSubstr(" loop: "));
}

TEST_P(dump_tasks_test, restores_the_previous_action_of_the_signal) {
    struct sigaction before{};
    ::sigaction(SIGUSR1, nullptr, &before);
    remake_loop({.dump_signal = SIGUSR1});
    struct sigaction during{};
    ::sigaction(SIGUSR1, nullptr, &during);

    destroy_loop();

    struct sigaction after{};
    ::sigaction(SIGUSR1, nullptr, &after);
    EXPECT_NE(during.sa_handler, before.sa_handler);
    EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST_P(dump_tasks_test, create_reports_a_signal_that_cannot_be_handled) {
    EXPECT_EQ(event_loop::create({.backend = GetParam(), .dump_signal = SIGKILL}).error(),
              std::errc::invalid_argument);
}

TEST_P(dump_tasks_test, a_debugger_may_call_it_anywhere) {
    CaptureStderr();
    simplenet_dump_tasks();
    run([]() -> task<> {
        simplenet_dump_tasks();
        co_return;
    });
    EXPECT_THAT(GetCapturedStderr(), ContainsRegex("no event loop.*\n.* loop: 1 tasks"));
}

INSTANTIATE_TEST_SUITE_P(backends, dump_tasks_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
