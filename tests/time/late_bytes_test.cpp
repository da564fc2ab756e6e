// Bytes, room and connections beat a limit that passes in the turn in which they arrive, however
// many arrive in it.

#include <simplenet/time/deadline.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_messages.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/full_listener.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::checked;
using testing::connect_raw;
using testing::turns;

// The kernel does 20 pieces of io_uring's work at a time, and receives no more than it has buffers
// for.
class late_bytes_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        clock_.set_automatic(false);
        checked(::getrlimit(RLIMIT_NOFILE, &descriptors_));
        rlimit more = descriptors_;
        more.rlim_cur = more.rlim_max;
        checked(::setrlimit(RLIMIT_NOFILE, &more));
    }
    void TearDown() override {
        for (auto& each : connections_)
            each.theirs.reset(); // avoids thousands of ports in TIME-WAIT
        connections_.clear();
        checked(::setrlimit(RLIMIT_NOFILE, &descriptors_));
        backend_test::TearDown(); // before the clock
    }

    void connect(int count, std::size_t pool = loop_options{}.receive_pool) {
        remake_loop({.receive_pool = pool, .clock = &clock_});
        for (int each = 0; each < count; ++each)
            connections_.push_back(connect_raw());
    }
    task<> send_to_all_as_limits_pass() {
        co_await turns(10); // until every task waits
        for (auto& each : connections_)
            each.theirs.send("bytes");
        clock_.advance(20ms);
    }

    static task<> read(tcp_stream& from) {
        std::array<std::byte, 8> buffer{};
        EXPECT_EQ((co_await with_timeout(from.read_some(buffer), 10ms)).value_or(0), 5U);
    }
    static task<> receive(tcp_stream& from) {
        EXPECT_TRUE(co_await with_timeout(from.receive(), 10ms));
    }
    static task<> receive_without_limit(tcp_stream& from) { EXPECT_TRUE(co_await from.receive()); }

    template <class Read>
    void read_everywhere(Read read) {
        run([&]() -> task<> {
            std::vector<join_handle<void>> readers;
            for (auto& each : connections_)
                readers.push_back(spawn(read(each.ours)));
            co_await send_to_all_as_limits_pass();
            for (auto& each : readers)
                co_await each;
        });
    }

    testing::manual_clock clock_;
    std::vector<testing::raw_connection<tcp_stream>> connections_;

private:
    rlimit descriptors_{};
};

TEST_P(late_bytes_test, hundreds_of_reads_get_their_bytes) {
    connect(200);
    read_everywhere(read);
}

TEST_P(late_bytes_test, many_hundreds_of_reads_get_their_bytes) {
    connect(1500);
    read_everywhere(read);
}

TEST_P(late_bytes_test, hundreds_of_receives_get_their_bytes) {
    connect(200);
    read_everywhere(receive);
}

TEST_P(late_bytes_test, reads_get_their_bytes_from_a_pool_of_one_buffer) {
    connect(40, 1);
    read_everywhere(read);
}

TEST_P(late_bytes_test, one_limit_among_many_without_passes_after_its_bytes) {
    connect(101);
    run([&]() -> task<> {
        std::vector<join_handle<void>> readers;
        for (auto& each : connections_) {
            const bool last = &each == &connections_.back();
            readers.push_back(spawn(last ? receive(each.ours) : receive_without_limit(each.ours)));
        }
        co_await send_to_all_as_limits_pass();
        for (auto& each : readers)
            co_await each;
    });
}

// A read that has not asked the kernel for anything yet.
TEST_P(late_bytes_test, a_limit_that_passes_before_its_read_waits_passes_after_its_bytes) {
    connect(100);
    auto [ours, theirs] = connect_raw();
    auto [busy, unread] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 10> buffer{};
        const auto first = mutable_buffer{buffer}.first(1);
        theirs.send("a");
        EXPECT_TRUE(co_await ours.read_some(first)); // the loop receives ahead from here on
        theirs.send("12345");
        std::vector<join_handle<void>> readers;
        for (auto& each : connections_)
            readers.push_back(spawn(receive_without_limit(each.ours)));
        co_await turns(10);
        bool started = false;
        auto limited = spawn([&]() -> task<> {
            for (int count = 0; count < 64; ++count) // all the inline turns of a resumption
                EXPECT_TRUE(co_await busy.write_some(const_buffer{std::string_view{"x"}}));
            started = true;
            auto read = with_timeout(async_read_exact(ours, mutable_buffer{buffer}), 10ms);
            const auto outcome = co_await std::move(read);
            EXPECT_TRUE(outcome) << error_of(outcome).message();
        });
        co_await testing::until([&] { return started; });
        for (auto& each : connections_)
            each.theirs.send("bytes");
        theirs.send("67890");
        clock_.advance(20ms);
        co_await limited;
        for (auto& each : readers)
            co_await each;
    });
}

TEST_P(late_bytes_test, a_connection_beats_the_limit_of_an_accept_beside_them) {
    connect(100);
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    std::optional<blocking::tcp_stream> client;
    run([&]() -> task<> {
        std::vector<join_handle<void>> readers;
        for (auto& each : connections_)
            readers.push_back(spawn(receive_without_limit(each.ours)));
        auto accepted =
            spawn([&]() -> task<> { EXPECT_TRUE(co_await with_timeout(listener.accept(), 10ms)); });
        co_await send_to_all_as_limits_pass();
        client = or_throw(blocking::tcp_stream::connect(or_throw(listener.local_endpoint())));
        co_await accepted;
        for (auto& each : readers)
            co_await each;
    });
}

// The kernel has sent a part of it, but not reported it yet.
TEST_P(late_bytes_test, room_beats_the_limit_of_a_write_that_has_moved) {
    connect(0);
    auto [ours, theirs] = connect_raw({.ours = 16384, .theirs = 16384});
    const int fd = ours.native_handle();
    const std::string text(1'000'000, 'x');
    std::size_t filled = 0; // bytes in flight at a time, which differ by kernel
    for (ssize_t count = 0; count >= 0; filled += static_cast<std::size_t>(count > 0 ? count : 0))
        count = ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    std::size_t received = 0;
    std::array<char, 2048> scratch{};
    const auto take = [&] {
        const ssize_t count = ::recv(theirs.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT);
        received += count > 0 ? static_cast<std::size_t>(count) : 0;
        return count > 0;
    };
    const auto queued = [](int at, unsigned long which) {
        int bytes = 0;
        checked(::ioctl(at, which, &bytes));
        return static_cast<std::size_t>(bytes);
    };
    run([&]() -> task<> {
        bool over = false;
        auto writer = spawn([&]() -> task<> {
            const const_buffer whole{text.data(), filled / 4 * 3};
            auto write = with_timeout(async_write_all(ours, whole), 10ms);
            const auto outcome = co_await std::move(write);
            over = true;
            EXPECT_TRUE(outcome) << error_of(outcome).message();
        });
        co_await turns(10);
        while (received + queued(theirs.fd(), FIONREAD) + queued(fd, SIOCOUTQNSD) <=
               filled) { // nothing has moved
            take();
            co_await turns(2);
        }
        EXPECT_FALSE(over);
        while (take() || queued(fd, SIOCOUTQ) != 0) { // all has arrived, so there is room
        }
        EXPECT_LT(received, filled + filled / 4 * 3);
        clock_.advance(20ms);
        co_await writer;
    });
}

// recv(2) stops after bytes that came with descriptors, even if more are available.
TEST_P(late_bytes_test, bytes_after_descriptors_beat_the_limit_of_an_exact_read) {
    connect(0);
    auto [ours, theirs] = testing::connect_raw_local();
    run([&]() -> task<> {
        std::array<std::byte, 10> buffer{};
        auto reader = spawn([&]() -> task<> {
            auto read = with_timeout(async_read_exact(ours, mutable_buffer{buffer}), 10ms);
            const auto outcome = co_await std::move(read);
            EXPECT_TRUE(outcome) << error_of(outcome).message();
        });
        co_await turns(10);
        const std::array fds{theirs.fd()};
        testing::send_with(theirs, "12345", fds);
        theirs.send("67890");
        clock_.advance(20ms);
        co_await reader;
    });
}

TEST_P(late_bytes_test, an_established_connection_beats_the_limit_of_its_connect) {
    connect(0);
    testing::full_listener listener;
    run([&]() -> task<> {
        bool over = false;
        auto connecting = spawn([&]() -> task<> {
            auto connect = with_timeout(async_connect(listener.at()), 10ms);
            const auto made = co_await std::move(connect);
            over = true;
            EXPECT_TRUE(made) << error_of(made).message();
        });
        co_await turns(10);
        EXPECT_FALSE(over);
        listener.let_the_next_in();
        clock_.advance(20ms);
        co_await connecting;
    });
}

TEST_P(late_bytes_test, a_connection_beats_a_limit_while_accepting_ahead_is_ended) {
    connect(0);
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    std::vector<blocking::tcp_stream> clients;
    for (int count = 0; count < 64; ++count)
        clients.push_back(or_throw(blocking::tcp_stream::connect(at)));
    run([&]() -> task<> {
        for (int count = 0; count < 64; ++count)
            EXPECT_TRUE(co_await listener.accept());
        clients.push_back(or_throw(blocking::tcp_stream::connect(at)));
        testing::await(listener.native_handle(), POLLIN);
        const auto late = co_await with_timeout(listener.accept(), 0ms);
        EXPECT_TRUE(late) << error_of(late).message();
    });
}

INSTANTIATE_TEST_SUITE_P(backends, late_bytes_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
