#include "sys/calls.hpp"

#include "support/descriptors.hpp"
#include "support/signal_storm.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/un.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using namespace std::chrono_literals;
namespace sys = simplenet::detail::sys;

struct pair_of_sockets {
    unique_fd left;
    unique_fd right;

    explicit pair_of_sockets(sys::mode waiting = sys::mode::blocking) {
        int fds[2];
        EXPECT_EQ(sys::socketpair(SOCK_STREAM, waiting, fds), 0);
        left.reset(fds[0]);
        right.reset(fds[1]);
    }
};

TEST(calls_test, descriptors_in_use_are_counted) {
    const auto count = static_cast<int>(open_descriptors());
    const int before = sys::descriptors_in_use();
    const pair_of_sockets two;
    const int now = sys::descriptors_in_use();

    // Before Linux 6.2 only the lowest free number is known.
    EXPECT_TRUE(now == before + 2 || now == sys::lowest_free_descriptor());
    EXPECT_TRUE(before == count || now == sys::lowest_free_descriptor());
}

TEST(calls_test, the_lowest_free_descriptor_is_the_next) {
    const int lowest = sys::lowest_free_descriptor();
    const pair_of_sockets two;

    EXPECT_EQ(two.left.get(), lowest);
}

TEST(calls_test, error_from_keeps_the_errno_in_the_system_category) {
    EXPECT_EQ(sys::error_from(-ECONNRESET), std::error_code(ECONNRESET, std::system_category()));
    EXPECT_EQ(sys::error_from(-EAGAIN), std::errc::operation_would_block);
}

TEST(calls_test, error_from_requires_a_failure) {
    EXPECT_DEATH((void)sys::error_from(0), "contract violation");
}

TEST(calls_test, return_values_become_results) {
    EXPECT_TRUE(sys::to_result(0));
    EXPECT_TRUE(sys::to_result(3));
    EXPECT_EQ(sys::to_result(-EBADF).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(sys::to_count(7), 7U);
    EXPECT_EQ(sys::to_count(-EPIPE).error(), std::errc::broken_pipe);
}

TEST(calls_test, every_new_descriptor_is_close_on_exec_and_in_the_requested_mode) {
    for (const auto waiting : {sys::mode::blocking, sys::mode::nonblocking}) {
        const bool nonblocking = waiting == sys::mode::nonblocking;

        const unique_fd made{sys::socket(AF_INET, SOCK_STREAM, 0, waiting)};
        const pair_of_sockets pair{waiting};
        ASSERT_EQ(sys::listen(made.get(), 1), 0);
        sockaddr_storage name{};
        socklen_t size = sizeof name;
        auto* const address = reinterpret_cast<sockaddr*>(&name);
        ASSERT_EQ(sys::getsockname(made.get(), address, size), 0);
        const unique_fd client{sys::socket(AF_INET, SOCK_STREAM, 0, sys::mode::blocking)};
        ASSERT_EQ(sys::connect(client.get(), address, size), 0);
        const unique_fd accepted{sys::accept(made.get(), waiting)};

        for (const int fd : {made.get(), pair.left.get(), pair.right.get(), accepted.get()}) {
            EXPECT_TRUE(is_close_on_exec(fd));
            EXPECT_EQ(is_nonblocking(fd), nonblocking);
        }
    }
}

TEST(calls_test, failures_are_negated_errnos) {
    std::array<char, 1> byte{};
    socklen_t size = 0;
    int value = 0;
    // A valid address: of two mistakes in a call the kernel reports one, qemu-user the other.
    const sockaddr anywhere{.sa_family = AF_INET, .sa_data = {}};

    EXPECT_EQ(sys::recv(-1, byte.data(), 1), -EBADF);
    EXPECT_EQ(sys::send(-1, byte.data(), 1), -EBADF);
    EXPECT_EQ(sys::bind(-1, &anywhere, sizeof anywhere), -EBADF);
    EXPECT_EQ(sys::listen(-1, 1), -EBADF);
    EXPECT_EQ(sys::accept(-1, sys::mode::blocking), -EBADF);
    EXPECT_EQ(sys::connect(-1, &anywhere, sizeof anywhere), -EBADF);
    EXPECT_EQ(sys::shutdown(-1, SHUT_WR), -EBADF);
    EXPECT_EQ(sys::close(-1), -EBADF);
    EXPECT_EQ(sys::getsockname(-1, nullptr, size), -EBADF);
    EXPECT_EQ(sys::getpeername(-1, nullptr, size), -EBADF);
    EXPECT_EQ(sys::set_option(-1, SOL_SOCKET, SO_REUSEADDR, 1), -EBADF);
    EXPECT_EQ(sys::get_option(-1, SOL_SOCKET, SO_REUSEADDR, value), -EBADF);
    EXPECT_EQ(sys::pending_error(-1), -EBADF);
    EXPECT_EQ(sys::set_mode(-1, sys::mode::blocking), -EBADF);
    EXPECT_EQ(sys::set_close_on_exec(-1), -EBADF);
    EXPECT_EQ(sys::socket(-1, SOCK_STREAM, 0, sys::mode::blocking), -EAFNOSUPPORT);
}

TEST(calls_test, sending_to_a_closed_peer_is_broken_pipe_and_raises_no_signal) {
    pair_of_sockets pair;
    pair.right.reset();
    std::array<iovec, 1> parts{iovec{&pair, 1}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = 1;

    EXPECT_EQ(sys::send(pair.left.get(), "x", 1), -EPIPE);
    EXPECT_EQ(sys::sendto(pair.left.get(), "x", 1, 0, nullptr, 0), -EPIPE);
    EXPECT_EQ(sys::sendmsg(pair.left.get(), message), -EPIPE);
    EXPECT_EQ(sys::sendv(pair.left.get(), parts), -EPIPE);
}

TEST(calls_test, a_received_descriptor_is_close_on_exec) {
    const pair_of_sockets pair;
    char byte = 'x';
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int sent = pair.left.get();
    std::memcpy(CMSG_DATA(header), &sent, sizeof sent);

    ASSERT_EQ(sys::sendmsg(pair.left.get(), message), 1);
    ASSERT_EQ(sys::recvmsg(pair.right.get(), message), 1);

    int received = -1;
    std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    const unique_fd owner{received};
    EXPECT_TRUE(is_close_on_exec(received));
}

TEST(calls_test, an_interrupted_recv_is_retried) {
    const pair_of_sockets pair;
    const signal_storm storm{[&] { EXPECT_EQ(sys::send(pair.right.get(), "x", 1), 1); }};
    char byte = 0;

    EXPECT_EQ(sys::recv(pair.left.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
}

TEST(calls_test, an_interrupted_accept_is_retried) {
    const unique_fd listener{sys::socket(AF_INET, SOCK_STREAM, 0, sys::mode::blocking)};
    ASSERT_EQ(sys::listen(listener.get(), 1), 0);
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    ASSERT_EQ(sys::getsockname(listener.get(), address, size), 0);
    const unique_fd client{sys::socket(AF_INET, SOCK_STREAM, 0, sys::mode::blocking)};

    const signal_storm storm{[&] { EXPECT_EQ(sys::connect(client.get(), address, size), 0); }};

    EXPECT_GE(unique_fd{sys::accept(listener.get(), sys::mode::blocking)}.get(), 0);
}

TEST(calls_test, set_mode_changes_only_the_mode) {
    const pair_of_sockets pair;

    EXPECT_EQ(sys::set_mode(pair.left.get(), sys::mode::nonblocking), 0);
    EXPECT_TRUE(is_nonblocking(pair.left.get()));
    EXPECT_EQ(sys::set_mode(pair.left.get(), sys::mode::nonblocking), 0) << "again";
    EXPECT_EQ(sys::set_mode(pair.left.get(), sys::mode::blocking), 0);
    EXPECT_FALSE(is_nonblocking(pair.left.get()));
    EXPECT_TRUE(is_close_on_exec(pair.left.get()));
}

TEST(calls_test, poll_returns_the_events) {
    const pair_of_sockets pair;

    EXPECT_EQ(sys::poll(pair.left.get(), POLLIN | POLLOUT, std::nullopt), POLLOUT);
    ASSERT_EQ(sys::send(pair.right.get(), "x", 1), 1);
    EXPECT_EQ(sys::poll(pair.left.get(), POLLIN, std::nullopt), POLLIN);
}

TEST(calls_test, poll_does_not_wait_when_the_deadline_has_passed) {
    const pair_of_sockets pair;
    const auto long_ago = std::chrono::steady_clock::time_point::min();

    EXPECT_EQ(sys::poll(pair.left.get(), POLLIN, long_ago), 0);
    EXPECT_EQ(sys::poll(pair.left.get(), POLLOUT, long_ago), POLLOUT);
}

TEST(calls_test, poll_never_ends_before_the_deadline_when_interrupted) {
    const pair_of_sockets pair;
    const auto deadline = std::chrono::steady_clock::now() + 30ms;
    const signal_storm storm{[] {}};

    EXPECT_EQ(sys::poll(pair.left.get(), POLLIN, deadline), 0);
    EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

TEST(calls_test, poll_accepts_the_latest_time_of_the_clock) {
    const pair_of_sockets pair;

    EXPECT_EQ(sys::poll(pair.left.get(), POLLOUT, std::chrono::steady_clock::time_point::max()),
              POLLOUT);
}

TEST(calls_test, poll_of_no_descriptor_fails_instead_of_waiting) {
    int closed = -1;
    {
        const pair_of_sockets pair;
        closed = pair.left.get();
    }

    EXPECT_EQ(sys::poll(-1, POLLIN, std::nullopt), -EBADF);
    EXPECT_EQ(sys::poll(closed, POLLIN, std::nullopt), -EBADF);
}

TEST(calls_test, accept_is_retried_only_after_errors_of_the_connection) {
    for (const int error : {ECONNABORTED, EPROTO, ENETDOWN, EHOSTUNREACH, ENETUNREACH}) {
        EXPECT_TRUE(sys::is_error_of_the_connection(-error)) << error;
    }
    for (const int error : {EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, EINVAL, EBADF, EOPNOTSUPP}) {
        EXPECT_FALSE(sys::is_error_of_the_connection(-error)) << error;
    }
}

TEST(calls_test, close_frees_the_number) {
    const int fd = sys::socket(AF_INET, SOCK_STREAM, 0, sys::mode::blocking);
    ASSERT_GE(fd, 0);

    EXPECT_EQ(sys::close(fd), 0);
    EXPECT_FALSE(is_open(fd));
}

TEST(calls_test, unlink_socket_removes_nothing_but_sockets) {
    const temporary_directory directory;
    const std::string file = directory / "file";
    const std::string path = directory / "socket";
    std::ofstream{file} << "precious";
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    const unique_fd bound{sys::socket(AF_UNIX, SOCK_STREAM, 0, sys::mode::blocking)};
    ASSERT_EQ(sys::bind(bound.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);

    EXPECT_EQ(sys::unlink_socket(file.c_str()), -ENOTSOCK);
    EXPECT_EQ(sys::unlink_socket(path.c_str()), 0);
    EXPECT_EQ(sys::unlink_socket(path.c_str()), -ENOENT);
    EXPECT_TRUE(std::filesystem::exists(file));
}

} // namespace
