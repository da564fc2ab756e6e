#include "sys/seam.hpp"

#include "support/fault_parts.hpp"
#include "support/fault_plan.hpp"
#include "support/sigpipe_watch.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <csignal>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::detail::sys {
namespace {

using ::testing::ElementsAre;

struct pair_of_sockets {
    pair_of_sockets() {
        std::array<int, 2> fds{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()),
                  0);
        left = unique_fd{fds[0]};
        right = unique_fd{fds[1]};
    }
    unique_fd left;
    unique_fd right;
};

TEST(seam_test, a_call_without_interceptors_reaches_the_kernel) {
    pair_of_sockets ends;

    EXPECT_EQ(send(ends.left.get(), "abc", 3), 3);

    std::array<char, 8> got{};
    EXPECT_EQ(recv(ends.right.get(), got.data(), got.size()), 3);
    EXPECT_EQ(std::string_view(got.data(), 3), "abc");
}

TEST(seam_test, an_interceptor_sees_the_arguments_and_may_change_them) {
    struct first_byte_only final : interceptor {
        long on_call(pending_call& call) noexcept override {
            if (call.which() != sys::call::send) return call.make();
            fd = call.descriptor();
            size = call.argument<std::size_t>(2);
            call.replace(2, std::size_t{1});
            return call.make();
        }
        int fd = -1;
        std::size_t size = 0;
    };
    pair_of_sockets ends;
    first_byte_only watching;
    const intercepting now{watching};

    EXPECT_EQ(send(ends.left.get(), "abc", 3), 1);

    EXPECT_EQ(watching.fd, ends.left.get());
    EXPECT_EQ(watching.size, 3U);
}

TEST(seam_test, an_interceptor_may_simulate_descriptors) {
    struct simulated final : interceptor {
        long on_call(pending_call& call) noexcept override {
            if (call.descriptor() != 1'000'000) return call.make();
            if (call.which() == sys::call::send) return call.argument<long>(2);
            return -ENOTCONN;
        }
    };
    simulated network;
    const intercepting now{network};

    EXPECT_EQ(send(1'000'000, "abc", 3), 3);
    char byte = 0;
    EXPECT_EQ(recv(1'000'000, &byte, 1), -ENOTCONN);
    EXPECT_EQ(recv(-1, &byte, 1), -EBADF);
}

TEST(seam_test, interceptors_are_called_last_first_and_delegate_to_the_others) {
    struct noting final : interceptor {
        noting(std::vector<int>& into, int number)
            : into_{into}
            , number_{number} {}
        long on_call(pending_call& call) noexcept override {
            into_.push_back(number_);
            return call.make();
        }

    private:
        std::vector<int>& into_;
        int number_;
    };
    std::vector<int> order;
    noting one{order, 1};
    noting two{order, 2};
    {
        const intercepting first{one};
        const intercepting second{two};
        EXPECT_EQ(listen(-1, 1), -EBADF);
    }
    EXPECT_EQ(listen(-1, 1), -EBADF);

    EXPECT_THAT(order, ElementsAre(2, 1));
}

TEST(seam_test, a_plan_fails_the_nth_call) {
    testing::fault_plan plan;
    plan.fail(call::listen, 1, EADDRINUSE);

    EXPECT_EQ(listen(-1, 1), -EBADF);
    EXPECT_EQ(listen(-1, 1), -EADDRINUSE);
    EXPECT_EQ(listen(-1, 1), -EBADF);
    EXPECT_EQ(plan.count(call::listen), 3U);
    EXPECT_EQ(plan.struck(), 1U);
}

TEST(seam_test, a_plan_may_keep_failing) {
    testing::fault_plan plan;
    plan.fail(call::listen, 1, EADDRINUSE, testing::from_then_on);

    EXPECT_EQ(listen(-1, 1), -EBADF);
    EXPECT_EQ(listen(-1, 1), -EADDRINUSE);
    EXPECT_EQ(listen(-1, 1), -EADDRINUSE);
}

TEST(seam_test, an_interruption_is_retried) {
    pair_of_sockets ends;
    testing::fault_plan plan;
    plan.fail(call::send, 0, EINTR, 2);

    EXPECT_EQ(send(ends.left.get(), "abc", 3), 3);
    EXPECT_EQ(plan.count(call::send), 3U);
}

TEST(seam_test, a_plan_shortens_transfers) {
    pair_of_sockets ends;
    testing::fault_plan plan;
    plan.shorten(call::send, 0, 2);

    EXPECT_EQ(send(ends.left.get(), "abc", 3), 2);
}

TEST(seam_test, a_close_that_fails_has_closed) {
    pair_of_sockets ends;
    testing::fault_plan plan;
    plan.fail(call::close, 0, EIO);

    EXPECT_EQ(close(ends.left.release()), -EIO);

    char byte = 0;
    EXPECT_EQ(recv(ends.right.get(), &byte, 1), 0);
}

// --- SIGPIPE -------------------------------------------------------------------------------------

/// A socket for sendfile(2) and splice(2), which have no MSG_NOSIGNAL.
class sigpipe_test : public ::testing::Test {
protected:
    static constexpr std::size_t size = 1000;

    void SetUp() override {
        int fds[2] = {-1, -1};
        ASSERT_EQ(pipe(fds, 4096), 0);
        out_.reset(fds[0]);
        in_.reset(fds[1]);
    }
    ssize_t send_file() { return sys::sendfile(ends_.left.get(), ::fileno(file_.get()), 0, size); }
    ssize_t send_pipe() {
        EXPECT_EQ(::write(in_.get(), std::string(size, 'x').data(), size), ssize_t{size});
        return splice_from_pipe(out_.get(), ends_.left.get(), size);
    }

    testing::sigpipe_watch sigpipes_;
    pair_of_sockets ends_;

private:
    testing::owned_file file_ = testing::temporary_file(std::string(size, 'x'));
    unique_fd out_;
    unique_fd in_;
};

// A short count hides the EPIPE, but the signal of a reset between two sends is raised
// nevertheless.
TEST_F(sigpipe_test, is_not_raised_by_a_short_count) {
    for (const call which : {call::sendfile, call::splice}) {
        testing::fault_plan plan;
        plan.lose_peer(which, 0, 10);

        EXPECT_EQ(which == call::sendfile ? send_file() : send_pipe(), 10);
        EXPECT_EQ(which == call::sendfile ? send_file() : send_pipe(), -EPIPE);

        EXPECT_EQ(sigpipes_.delivered(), 0);
        EXPECT_FALSE(sigpipes_.is_blocked());
    }
}

TEST_F(sigpipe_test, is_not_left_for_a_program_that_blocks_it) {
    const testing::sigpipe_block blocked;
    testing::fault_plan plan;
    plan.lose_peer(call::sendfile, 0, 10);

    EXPECT_EQ(send_file(), 10);
    EXPECT_EQ(send_file(), -EPIPE);

    EXPECT_FALSE(sigpipes_.is_pending());
    EXPECT_TRUE(sigpipes_.is_blocked());
}

TEST_F(sigpipe_test, stays_pending_if_it_was_pending_before) {
    const testing::sigpipe_block blocked;
    ::raise(SIGPIPE);
    testing::fault_plan plan;
    plan.lose_peer(call::sendfile, 0, 10);

    EXPECT_EQ(send_file(), 10);
    EXPECT_EQ(send_file(), -EPIPE);

    EXPECT_TRUE(blocked.take());
    EXPECT_FALSE(sigpipes_.is_pending());
}

// kill(1) sends it to the process, not to the thread.
TEST_F(sigpipe_test, of_another_process_is_delivered_if_it_arrives_during_the_call) {
    struct killed_meanwhile final : interceptor {
        long on_call(pending_call& call) noexcept override {
            call.replace(3, std::size_t{10});
            const pid_t child = ::fork();
            if (child == 0) ::_exit(::kill(::getppid(), SIGPIPE));
            ::waitpid(child, nullptr, 0);
            return call.make();
        }
    };
    killed_meanwhile sending;
    const intercepting now{sending};

    EXPECT_EQ(send_file(), 10);

    EXPECT_EQ(sigpipes_.delivered(), 1);
}

TEST_F(sigpipe_test, does_not_affect_a_program_that_ignores_it) {
    std::signal(SIGPIPE, SIG_IGN); // sigpipe_watch restores the previous action
    testing::fault_plan plan;
    plan.lose_peer(call::sendfile, 0, 10);

    EXPECT_EQ(send_file(), 10);
    EXPECT_EQ(send_file(), -EPIPE);

    EXPECT_FALSE(sigpipes_.is_pending());
}

} // namespace
} // namespace simplenet::v0::detail::sys
