// Faults in every call of a loop that does not concern sockets: signals, foreign descriptors, the
// native handle, a dump of the tasks.

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"
#include "support/pipes.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;
using testing::make_connection;
using testing::make_pipe;
using testing::read_all;
using testing::told;

class loop_faults_test : public testing::fail_everywhere_test {};

class waiting_for_a_signal : public fault_scenario {
    task<result<std::string>> play() override {
        signal_set signals{SIGUSR2};
        ::pthread_kill(::pthread_self(), SIGUSR2);
        const int number = co_await or_return(co_await signals.next());
        co_return number == SIGUSR2 ? "it" : "another";
    }

public:
    // A signal that was not received must not end the process.
    ~waiting_for_a_signal() override {
        ::sigset_t ours;
        ::sigemptyset(&ours);
        ::sigaddset(&ours, SIGUSR2);
        const timespec no_wait{};
        ::sigtimedwait(&ours, nullptr, &no_wait);
        ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
    }
    waiting_for_a_signal() {
        ::sigset_t ours;
        ::sigemptyset(&ours);
        ::sigaddset(&ours, SIGUSR2);
        ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
    }
};
TEST_P(loop_faults_test, signal_set) {
    fail_everywhere<waiting_for_a_signal>();
}

class catching_a_signal : public fault_scenario {
    task<result<std::string>> play() override {
        signal_set signals{SIGURG}; // SIGURG is ignored by default
        ::pthread_kill(::pthread_self(), SIGURG);
        co_return told(co_await or_return(co_await signals.next()));
    }
};
TEST_P(loop_faults_test, signals) {
    fail_everywhere<catching_a_signal>();
}

class waiting_for_a_pipe : public fault_scenario {
    static task<result<>> write(int fd) {
        co_await yield();
        if (auto room = co_await async_wait_writable(fd); !room) co_return room;
        if (::write(fd, "x", 1) != 1) co_return fail(std::errc::io_error);
        co_return result<>{};
    }
    static task<result<>> wait(int fd) { co_return co_await async_wait_readable(fd); }
    task<result<std::string>> play() override {
        const auto [out, in] = make_pipe();
        co_await or_return(co_await gather(wait(out.get()), write(in.get())));
        char got = 0;
        co_return ::read(out.get(), &got, 1) == 1 ? std::string(1, got) : std::string{};
    }
};
TEST_P(loop_faults_test, foreign_descriptor) {
    fail_everywhere<waiting_for_a_pipe>();
}

/// A loop inside another one, as far as its native handle is concerned.
class embedding : public fault_scenario {
    task<result<std::string>> play() override {
        event_loop* const here = event_loop::current();
        // -1 without a descriptor or memory for it; the loop continues without.
        static_cast<void>(here->native_handle());
        co_await or_return(co_await async_sleep(100us));
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(ends.client.shutdown_write());
        co_await or_return(co_await read_all(ends.server, got_));
        co_return "embedded";
    }
    std::string got_;
};
TEST_P(loop_faults_test, native_handle) {
    fail_everywhere<embedding>();
}

/// A wait that reaches its limit makes one more attempt.
class waiting_with_a_limit : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        // A number so high that the memory for its record must grow.
        const unique_fd high{::fcntl(ends.server.native_handle(), F_DUPFD_CLOEXEC, 200)};
        const auto file = testing::temporary_file("");
        if (!high || !file) co_return fail(std::errc::io_error);
        co_await or_return(co_await async_wait_readable(::fileno(file.get())));
        const auto nothing = co_await with_timeout(async_wait_readable(high.get()), 1ms);
        if (nothing || nothing.error() != errc::deadline_exceeded) {
            if (!nothing) co_return fail(nothing);
            co_return "something";
        }
        co_return "nothing";
    }
};
TEST_P(loop_faults_test, wait_with_a_limit) {
    fail_everywhere<waiting_with_a_limit>();
}

/// A signal prints what each task waits for.
class dumping_tasks : public fault_scenario {
    task<result<std::string>> play() override {
        ::raise(SIGUSR2);
        for (int turns = 3; turns > 0; --turns)
            co_await async_sleep(0s);
        co_return "dumped";
    }
};
TEST_P(loop_faults_test, dump_of_the_tasks) {
    ::testing::internal::CaptureStderr();
    fail_everywhere<dumping_tasks>({.dump_signal = SIGUSR2});
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(printed.contains("loop: "));
    EXPECT_TRUE(printed.contains("no memory to print the tasks"));
}

INSTANTIATE_TEST_SUITE_P(backends, loop_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
