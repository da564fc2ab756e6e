// Servers under load: more connects at once than the backlog holds, a loop that a handler blocks,
// peers that never read.

#include "support/child_process.hpp"
#include "support/descriptor_limit.hpp"
#include "support/full_form.hpp"
#include "support/served_group.hpp"

#include <simplenet/insight/stall_report.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

class server_load_test : public served_test {
protected:
    static constexpr endpoint anywhere() { return endpoint::loopback(0); }
};

/// How the connections of a client process ended.
struct counts {
    std::uint32_t answered = 0;
    std::uint32_t reset = 0;
    std::uint32_t lost = 0;
};

/// Clients without the library, all at once: each connects, sends a byte and waits for an answer,
/// which it keeps until all have one.
class crowd {
public:
    crowd(std::uint16_t port, std::size_t size)
        : clients_(size) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (pollfd& each : clients_) {
            each.fd = checked(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
            // Ends with a reset: in TIME_WAIT they would occupy the ports of other tests.
            const linger abort{.l_onoff = 1, .l_linger = 0};
            ::setsockopt(each.fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
            each.events = POLLOUT;
            const int outcome = ::connect(each.fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
            if (outcome != 0 && errno != EINPROGRESS) end(each, false);
        }
    }
    counts until_all_have_ended() {
        while (told_.answered + told_.reset < clients_.size()) {
            if (::poll(clients_.data(), clients_.size(), 10'000) <= 0) break;
            for (pollfd& each : clients_) {
                if (each.revents != 0) proceed(each);
            }
        }
        told_.lost = static_cast<std::uint32_t>(clients_.size()) - told_.answered - told_.reset;
        return told_;
    }

private:
    void proceed(pollfd& each) {
        if (each.events == POLLOUT) {
            if (::send(each.fd, "x", 1, MSG_NOSIGNAL) != 1) return end(each, false);
            each.events = POLLIN;
            return;
        }
        char answer = 0;
        const ssize_t got = ::recv(each.fd, &answer, 1, 0);
        if (got == 1 && answer == 'x') return end(each, true);
        if (got < 0 && (errno == ECONNRESET || errno == EPIPE)) return end(each, false);
        ::close(std::exchange(each.fd, -1)); // lost
    }
    /// An answered one stays connected, which occupies its place at the server.
    void end(pollfd& each, bool answered) {
        ++(answered ? told_.answered : told_.reset);
        if (!answered) ::close(each.fd);
        each.fd = -1;
    }

    std::vector<pollfd> clients_;
    counts told_;
};

TEST_P(server_load_test, of_many_connects_at_once_none_is_lost) {
    constexpr std::size_t processes = 2;
    const std::size_t places = short_or_full(1000, 10'000);
    const std::size_t clients = 2 * places / processes; // of each process
    rlimit descriptors{};
    ::getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = descriptors.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &descriptors);
    // 1200, or 10 200 in the full form. The hard limit, which was just taken, is rarely so low.
    if (descriptors.rlim_cur < places + 200) GTEST_SKIP() << "too few descriptors";
    std::array<int, 2> port{};
    std::array<int, 2> told{};
    checked(::pipe2(port.data(), O_CLOEXEC));
    checked(::pipe2(told.data(), O_CLOEXEC));
    // Before this process has threads.
    const auto be_clients = [&] {
        std::uint16_t to = 0;
        checked(::read(port[0], &to, sizeof to));
        crowd all{to, clients};
        const counts ended = all.until_all_have_ended();
        checked(::write(told[1], &ended, sizeof ended));
        ::close(port[1]);
        return ::read(port[0], &to, 1) == 0 ? 0 : 1; // connected until the server has counted
    };
    child_process first{be_clients};
    child_process second{be_clients};

    auto group = make_group(2);
    auto server = or_throw(tcp_server::listen(
        group, anywhere(), {.max_connections = places, .full = when_full::reset}));
    EXPECT_TRUE(server.serve(echo));
    const std::uint16_t to = server.local_endpoint().port();
    for (std::size_t each = 0; each < processes; ++each)
        checked(::write(port[1], &to, sizeof to));
    counts sum;
    for (std::size_t each = 0; each < processes; ++each) {
        counts one;
        ASSERT_EQ(::read(told[0], &one, sizeof one), static_cast<ssize_t>(sizeof one));
        sum.answered += one.answered;
        sum.reset += one.reset;
        sum.lost += one.lost;
    }

    const server_statistics now = server.statistics();
    EXPECT_EQ(sum.lost, 0U);
    EXPECT_EQ(sum.answered, places);
    EXPECT_EQ(sum.reset, now.refused);
    EXPECT_EQ(now.accepted, processes * clients);
    EXPECT_EQ(now.open, places);
    report_figures(std::to_string(sum.answered) + " answered, " + std::to_string(sum.reset) +
                   " refused");
    ::close(port[1]);
    EXPECT_EQ(first.end(), "status 0");
    EXPECT_EQ(second.end(), "status 0");
    for (const int each : {port[0], told[0], told[1]})
        ::close(each);
}

/// The kernel drops handshakes beyond the backlog, and clients repeat them after a second.
TEST_P(server_load_test, an_overflow_of_the_backlog_delays_connections_and_loses_none) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, anywhere(), {.listen = {.backlog = 16}}));
    crowd clients{server.local_endpoint().port(), 40};

    EXPECT_TRUE(server.serve(echo));

    const counts ended = clients.until_all_have_ended();
    EXPECT_EQ(ended.answered, 40U);
    EXPECT_EQ(server.statistics().accepted, 40U);
}

std::atomic<int> stalls = 0;

TEST_P(server_load_test, a_blocked_loop_is_reported_while_the_others_serve) {
    std::latch release{1};
    std::atomic<bool> blocked = false;
    stalls = 0;
    auto group =
        make_group(2, {.stall_threshold = 5ms, .on_stall = [](const stall_report&) { ++stalls; }});
    auto server = or_throw(tcp_server::listen(
        group, anywhere(),
        {.accept = accept_mode::single_acceptor, .balance = balance::round_robin}));
    event_loop* const acceptor = &group[0];
    EXPECT_TRUE(server.serve([&, acceptor](tcp_stream stream) -> task<> {
        if (event_loop::current() != acceptor && !blocked.exchange(true)) release.wait();
        co_await echo(std::move(stream));
    }));
    auto first = connect(server.local_endpoint(), 2);
    EXPECT_TRUE(eventually([&] { return blocked.load(); }));

    EXPECT_TRUE(eventually([&] { return stalls > 0; }));
    for (auto& each : connect(server.local_endpoint(), 10)) {
        each.send("x");
        EXPECT_EQ(each.receive(1), "x");
    }

    release.count_down();
    for (auto& each : first) {
        each.send("y");
        EXPECT_EQ(each.receive(1), "y");
    }
}

TEST_P(server_load_test, the_idle_timeout_ends_a_writer_whose_peer_does_not_read) {
    auto group = make_group(1);
    auto server = or_throw(tcp_server::listen(group, anywhere(), {.idle_timeout = 10ms}));
    EXPECT_TRUE(server.serve([](tcp_stream stream) -> task<> {
        const std::string block(65536, 'x');
        auto sent = co_await async_write_all(stream, block);
        while (sent)
            sent = co_await async_write_all(stream, block);
        EXPECT_EQ(error_of(sent), errc::deadline_exceeded);
    }));

    const auto mute = connect(server.local_endpoint());

    EXPECT_TRUE(eventually([&] { return server.statistics().ended == 1; }));
}

INSTANTIATE_TEST_SUITE_P(backends, server_load_test,
                         ::testing::Values(backend::epoll, backend::io_uring), backend_name);

} // namespace
} // namespace simplenet::v0::testing
