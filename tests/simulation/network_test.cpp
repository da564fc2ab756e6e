// The simulated network on its own: it must behave like the kernel.

#include "simulation/network.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

namespace simplenet::v0::simulation {
namespace {

using namespace std::chrono_literals;

class network_test : public ::testing::Test {
protected:
    static sockaddr_in address(const char* host, std::uint16_t port) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(port);
        EXPECT_EQ(::inet_pton(AF_INET, host, &at.sin_addr), 1);
        return at;
    }
    static const sockaddr* any(const sockaddr_in& of) {
        return reinterpret_cast<const sockaddr*>(&of);
    }

    /// Lets `time` pass.
    void pass(nanoseconds time) {
        std::array<epoll_event, 8> events{};
        const auto until = clock_.elapsed() + time;
        while (clock_.elapsed() < until)
            static_cast<void>(net_.epoll_wait(epoll_.get(), events, until - clock_.elapsed()));
    }
    void watch(int fd) {
        epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.fd = fd}};
        ASSERT_EQ(net_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, fd, &event), 0);
    }
    /// The next event reported for any socket.
    epoll_event next_event() {
        std::array<epoll_event, 1> events{};
        EXPECT_EQ(net_.epoll_wait(epoll_.get(), events, 10s), 1);
        return events[0];
    }

    int listening(std::uint16_t port, int backlog = 5) {
        const int fd = net_.socket(AF_INET, SOCK_STREAM);
        const auto at = address("10.0.0.2", port);
        EXPECT_EQ(net_.bind(fd, any(at), sizeof at), 0);
        EXPECT_EQ(net_.listen(fd, backlog), 0);
        return fd;
    }
    int connecting(std::uint16_t port) {
        const int fd = net_.socket(AF_INET, SOCK_STREAM);
        const auto to = address("10.0.0.2", port);
        EXPECT_EQ(net_.connect(fd, any(to), sizeof to), -EINPROGRESS);
        return fd;
    }
    struct ends {
        int client;
        int server;
    };
    ends connected() {
        const int listener = listening(80);
        const int client = connecting(80);
        pass(1s);
        const int server = net_.accept(listener);
        EXPECT_GE(server, 0);
        EXPECT_EQ(net_.close(listener), 0);
        return {client, server};
    }
    int error_of(int fd) {
        int error = -1;
        socklen_t size = sizeof error;
        EXPECT_EQ(net_.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, size), 0);
        return error;
    }
    ssize_t send(int fd, std::string_view text) {
        return net_.send(fd, text.data(), text.size(), 0);
    }
    ssize_t receive(int fd, std::size_t size = 100) {
        text_.resize(size);
        const ssize_t count = net_.recv(fd, text_.data(), size, 0);
        text_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        return count;
    }

    conditions like_;
    event_log log_;
    simulated_clock clock_;
    network net_{1, like_, clock_, log_};
    unique_fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
    std::string text_;
};

TEST_F(network_test, bytes_are_delayed_and_keep_their_order) {
    const auto [client, server] = connected();

    EXPECT_EQ(send(client, "one"), 3);
    EXPECT_EQ(send(client, "two"), 3);
    EXPECT_EQ(receive(server), -EAGAIN);
    pass(1ms);

    EXPECT_EQ(receive(server), 6);
    EXPECT_EQ(text_, "onetwo");
}

TEST_F(network_test, a_connect_without_a_listener_is_refused) {
    const int client = connecting(81);
    EXPECT_EQ(net_.readiness(client), 0U);
    watch(client);

    EXPECT_NE(next_event().events & EPOLLERR, 0U);
    EXPECT_EQ(error_of(client), ECONNREFUSED);
    EXPECT_EQ(error_of(client), 0) << "reading it clears it";
}

TEST_F(network_test, the_end_comes_after_the_bytes) {
    const auto [client, server] = connected();

    EXPECT_EQ(send(client, "last"), 4);
    EXPECT_EQ(net_.shutdown(client, SHUT_WR), 0);
    pass(10ms);

    EXPECT_EQ(receive(server), 4);
    EXPECT_EQ(receive(server), 0);
    EXPECT_EQ(receive(server), 0);
    EXPECT_EQ(send(server, "still"), 5);
    EXPECT_EQ(send(client, "no"), -EPIPE);
}

TEST_F(network_test, a_close_with_unread_bytes_is_a_reset) {
    const auto [client, server] = connected();
    EXPECT_EQ(send(client, "unread"), 6);
    EXPECT_EQ(send(server, "read"), 4);
    pass(10ms);

    EXPECT_EQ(net_.close(server), 0);
    pass(10ms);

    EXPECT_EQ(receive(client), 4) << "bytes before the reset are available";
    EXPECT_EQ(receive(client), -ECONNRESET);
    EXPECT_EQ(receive(client), 0);
    EXPECT_EQ(send(client, "x"), -EPIPE);
}

TEST_F(network_test, a_full_window_stops_the_sender_until_the_receiver_reads) {
    const auto [client, server] = connected();
    const std::string much(1'000'000, 'x');
    ssize_t taken = 0;
    for (int round = 0; round < 100; ++round) {
        const ssize_t count = send(client, much);
        if (count > 0) taken += count;
        pass(1ms);
    }
    EXPECT_EQ(taken, static_cast<ssize_t>(like_.send_room + like_.receive_room));
    EXPECT_EQ(net_.readiness(client) & EPOLLOUT, 0U);
    watch(client);
    static_cast<void>(receive(server, like_.receive_room));

    EXPECT_NE(next_event().events & EPOLLOUT, 0U);
    EXPECT_GT(send(client, much), 0);
}

TEST_F(network_test, a_partitioned_network_delivers_its_bytes_when_it_heals) {
    const auto [client, server] = connected();
    net_.part("10.0.0.1", "10.0.0.2");
    EXPECT_EQ(send(client, "patience"), 8);
    pass(60s);
    EXPECT_EQ(receive(server), -EAGAIN);

    net_.heal();
    pass(1ms);

    EXPECT_EQ(receive(server), 8);
}

TEST_F(network_test, a_connect_across_a_partition_gets_no_answer) {
    const int listener = listening(80);
    net_.part("10.0.0.1", "10.0.0.2");
    const int client = connecting(80);
    pass(10min);

    EXPECT_EQ(error_of(client), ETIMEDOUT);
    EXPECT_EQ(net_.accept(listener), -EAGAIN);
}

TEST_F(network_test, events_are_edge_triggered) {
    const auto [client, server] = connected();
    watch(server);
    EXPECT_EQ(next_event().events, unsigned{EPOLLOUT});

    EXPECT_EQ(send(client, "a"), 1);
    EXPECT_NE(next_event().events & EPOLLIN, 0U);
    std::array<epoll_event, 1> events{};
    EXPECT_EQ(net_.epoll_wait(epoll_.get(), events, 1s), 0) << "reported once";

    EXPECT_EQ(send(client, "b"), 1);
    EXPECT_NE(next_event().events & EPOLLIN, 0U);
}

TEST_F(network_test, a_wait_that_can_never_end_is_reported) {
    std::string told;
    net_.on_stuck = [](void* text, std::string_view why) {
        static_cast<std::string*>(text)->append(why);
    };
    net_.on_stuck_argument = &told;
    std::array<epoll_event, 1> events{};

    EXPECT_EQ(net_.epoll_wait(epoll_.get(), events, std::nullopt), 0);
    EXPECT_EQ(told, "waits for something that never comes");
}

TEST_F(network_test, a_descriptor_is_reserved_in_the_kernel_until_its_close) {
    const int fd = net_.socket(AF_INET, SOCK_STREAM);
    EXPECT_GE(fd, 0);
    EXPECT_NE(::fcntl(fd, F_GETFD), -1);
    EXPECT_EQ(net_.open_descriptors(), 1U);

    EXPECT_EQ(net_.close(fd), 0);

    EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
    EXPECT_FALSE(net_.owns(fd));
    EXPECT_EQ(net_.open_descriptors(), 0U);
}

} // namespace
} // namespace simplenet::v0::simulation
