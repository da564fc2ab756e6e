// SIGINT and SIGTERM as run() handles them, and signal_set: real signals to a program of their own.

#include "support/backend_test.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <string>

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::testing {
namespace {

/// signals_helper, with pipes to communicate. Killed at the end if it still runs.
class helper {
public:
    helper(const char* what, backend which) {
        int to_child[2];
        int from_child[2];
        if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) std::abort();
        process_ = ::fork();
        if (process_ == 0) {
            // The background jobs of a shell inherit an ignored SIGINT.
            for (const int number : {SIGINT, SIGTERM})
                std::signal(number, SIG_DFL);
            ::dup2(to_child[0], STDIN_FILENO);
            ::dup2(from_child[1], STDOUT_FILENO);
            ::execl(SIGNALS_HELPER, SIGNALS_HELPER, what, to_string(which), nullptr);
            ::_exit(127);
        }
        input_.reset(to_child[1]);
        output_.reset(from_child[0]);
        ::close(to_child[0]);
        ::close(from_child[1]);
    }
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;
    ~helper() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }

    void send(int number) const { EXPECT_EQ(::kill(process_, number), 0); }
    void go_on() const { EXPECT_EQ(::write(input_.get(), "\n", 1), 1); }

    /// The next line of output; empty at its end.
    std::string line() {
        std::string text;
        for (char each = 0; ::read(output_.get(), &each, 1) == 1 && each != '\n';)
            text += each;
        return text;
    }

    /// The way it ended: "status 3", "signal 15".
    std::string end() {
        int status = 0;
        EXPECT_EQ(::waitpid(process_, &status, 0), process_);
        process_ = 0;
        return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                   : "status " + std::to_string(WEXITSTATUS(status));
    }

private:
    pid_t process_ = 0;
    unique_fd input_;
    unique_fd output_;
};

const std::string canceled = std::make_error_code(std::errc::operation_canceled).message();
const std::string killed_by_term = "signal " + std::to_string(SIGTERM);
const std::string killed_by_int = "signal " + std::to_string(SIGINT);

class run_signals_test : public testing::own_loops_test {
protected:
    [[nodiscard]] static helper start(const char* what) { return helper{what, GetParam()}; }

private:
    watchdog watchdog_;
};

TEST_P(run_signals_test, the_first_one_stops_main_and_the_handlers_are_restored) {
    for (const int number : {SIGINT, SIGTERM}) {
        auto program = start("stop");
        EXPECT_EQ(program.line(), "ready");
        program.send(number);
        EXPECT_EQ(program.line(), canceled);
        EXPECT_EQ(program.line(), "restored");
        EXPECT_EQ(program.end(), "status 3");
    }
}

TEST_P(run_signals_test, each_run_handles_them_again) {
    auto program = start("twice");
    for (int run = 0; run < 2; ++run) {
        EXPECT_EQ(program.line(), "ready");
        program.send(SIGTERM);
        EXPECT_EQ(program.line(), canceled);
    }
    EXPECT_EQ(program.line(), "restored");
    EXPECT_EQ(program.end(), "status 3");
}

TEST_P(run_signals_test, the_second_one_kills) {
    auto program = start("deaf");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGTERM);
    EXPECT_EQ(program.line(), "stopping");
    program.send(SIGINT);
    EXPECT_EQ(program.end(), killed_by_int);
}

TEST_P(run_signals_test, the_second_one_kills_a_main_that_never_looks) {
    for (const char* what : {"spin", "hang"}) {
        auto program = start(what);
        EXPECT_EQ(program.line(), "ready");
        program.send(SIGINT); // a second SIGINT might merge with the first
        program.send(SIGTERM);
        const auto end = program.end();
        EXPECT_TRUE(end == killed_by_term || end == killed_by_int) << end; // in either order
    }
}

TEST_P(run_signals_test, a_handler_of_the_program_is_not_replaced) {
    auto program = start("own_handler");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGTERM);
    EXPECT_EQ(program.line(), "mine");
    program.send(SIGTERM);
    EXPECT_EQ(program.line(), "mine");
    program.send(SIGINT);
    EXPECT_EQ(program.line(), canceled);
    EXPECT_EQ(program.line(), "kept");
    EXPECT_EQ(program.end(), "status 3");
}

TEST_P(run_signals_test, a_handler_that_main_installs_stays) {
    auto program = start("replaced");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGINT);
    EXPECT_EQ(program.line(), "mine");
    program.send(SIGTERM);
    EXPECT_EQ(program.line(), canceled);
    EXPECT_EQ(program.line(), "kept");
    EXPECT_EQ(program.line(), "restored");
    EXPECT_EQ(program.end(), "status 3");
}

TEST_P(run_signals_test, an_ignored_one_stays_ignored) {
    auto program = start("ignored");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGINT);
    program.send(SIGINT);
    program.send(SIGTERM);
    EXPECT_EQ(program.line(), canceled);
    EXPECT_EQ(program.end(), "status 3");
}

TEST_P(run_signals_test, without_handle_signals_it_has_its_default_effect) {
    auto program = start("off");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGTERM);
    EXPECT_EQ(program.end(), killed_by_term);
}

TEST_P(run_signals_test, a_run_off_the_main_thread_does_not_touch_them) {
    auto program = start("other_thread");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGINT);
    EXPECT_EQ(program.end(), killed_by_int);
}

TEST_P(run_signals_test, one_delivered_to_another_thread_stops_main_too) {
    auto program = start("from_thread");
    EXPECT_EQ(program.line(), "ready");
    EXPECT_EQ(program.line(), canceled);
    EXPECT_EQ(program.line(), "restored");
    EXPECT_EQ(program.end(), "status 3");
}

TEST_P(run_signals_test, one_that_arrives_after_the_end_of_main_takes_effect_after_run) {
    auto program = start("after");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGTERM);
    program.go_on();
    EXPECT_EQ(program.line(), "cleaned");
    EXPECT_EQ(program.line(), ""); // not "survived"
    EXPECT_EQ(program.end(), killed_by_term);
}

class signal_set_in_a_program_test : public run_signals_test {};

TEST_P(signal_set_in_a_program_test, receives_signals_sent_to_the_process) {
    for (const char* what : {"set_inside", "set_outside"}) {
        auto program = start(what);
        EXPECT_EQ(program.line(), "ready");
        for (int round = 0; round < 3; ++round) {
            program.send(SIGINT);
            EXPECT_EQ(program.line(), "SIGINT");
        }
        program.send(SIGTERM);
        EXPECT_EQ(program.line(), "SIGTERM");
        EXPECT_EQ(program.line(), "restored");
        EXPECT_EQ(program.end(), "status 0");
    }
}

TEST_P(signal_set_in_a_program_test, unreceived_signals_take_effect_when_the_set_is_destroyed) {
    auto program = start("set_dropped");
    EXPECT_EQ(program.line(), "ready");
    program.send(SIGTERM);
    program.go_on();
    EXPECT_EQ(program.end(), killed_by_term);
}

// The program is another process, which the perturbed kernel does not reach.
INSTANTIATE_TEST_SUITE_P(backends, run_signals_test, real_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, signal_set_in_a_program_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
