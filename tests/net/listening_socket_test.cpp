#include "net/listening_socket.hpp"

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/time/deadline.hpp>

#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::turns;
using testing::until;

class listening_socket_test : public testing::backend_test {
protected:
    detail::listening_socket listen(unsigned accept_ahead = 64) {
        auto listener = or_throw(nonblocking::tcp_listener::bind(endpoint::loopback(0)));
        at_ = or_throw(listener.local_endpoint());
        return {std::move(listener).release(), accept_ahead};
    }
    std::vector<testing::raw_peer> connect(int count) {
        std::vector<testing::raw_peer> peers;
        for (int each = 0; each < count; ++each) {
            auto stream = or_throw(blocking::tcp_stream::connect(at_));
            peers.emplace_back(std::move(stream).release());
        }
        return peers;
    }
    [[nodiscard]] const endpoint& at() const { return at_; }

private:
    endpoint at_;
};

/// Everything that a listener still gives after it stopped accepting ahead.
task<std::size_t> drain(detail::listening_socket& listener) {
    listener.stop_accepting_ahead();
    std::size_t count = 0;
    for (;;) {
        const auto accepted = listener.try_accept();
        if (accepted) {
            ++count;
            continue;
        }
        EXPECT_EQ(error_of(accepted), std::errc::operation_would_block);
        if (!listener.is_accepting_ahead()) co_return count;
        co_await yield();
    }
}

TEST_P(listening_socket_test, try_accept_does_not_wait) {
    auto listener = listen();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(listener.try_accept()), std::errc::operation_would_block);
        const auto peers = connect(1);

        EXPECT_TRUE(listener.try_accept());

        EXPECT_EQ(error_of(listener.try_accept()), std::errc::operation_would_block);
        co_return;
    });
}

TEST_P(listening_socket_test, a_closed_listener_refuses_try_accept) {
    auto listener = listen();
    run([&]() -> task<> {
        listener.close();
        EXPECT_EQ(error_of(listener.try_accept()), std::errc::bad_file_descriptor);
        co_return;
    });
}

TEST_P(listening_socket_test, a_drained_listener_has_lost_no_connection) {
    auto listener = listen();
    auto peers = connect(50);
    run([&]() -> task<> {
        EXPECT_TRUE(co_await listener.accept());
        co_await turns(3); // on io_uring the others are accepted ahead
        for (auto& more : connect(50))
            peers.push_back(std::move(more));

        EXPECT_EQ(co_await drain(listener), 99U);
    });
}

TEST_P(listening_socket_test, a_listener_that_waits_for_a_connection_can_be_drained) {
    auto listener = listen();
    std::vector<testing::raw_peer> peers;
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
        peers = connect(20);

        EXPECT_EQ(co_await drain(listener), 20U);
        EXPECT_EQ(co_await drain(listener), 0U);
    });
}

TEST_P(listening_socket_test, after_the_drain_connections_stay_in_the_backlog) {
    auto listener = listen();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
        EXPECT_EQ(co_await drain(listener), 0U);
        const unique_fd successor{testing::checked(::dup(listener.native_handle()))};
        const auto peers = connect(3);
        co_await turns(5);

        for (int each = 0; each < 3; ++each) {
            const unique_fd accepted{::accept(successor.get(), nullptr, nullptr)};
            EXPECT_TRUE(accepted);
        }
    });
}

TEST_P(listening_socket_test, without_accept_ahead_each_accept_takes_one_connection) {
    auto listener = listen(0);
    const unique_fd successor{testing::checked(::dup(listener.native_handle()))};
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
        auto waiting = spawn([&]() -> task<> { EXPECT_TRUE(co_await listener.accept()); });
        co_await turns(2);
        const auto peers = connect(3);
        co_await waiting;
        co_await turns(5);

        for (int each = 0; each < 2; ++each) {
            const unique_fd accepted{::accept(successor.get(), nullptr, nullptr)};
            EXPECT_TRUE(accepted);
        }
    });
}

TEST_P(listening_socket_test, says_that_descriptors_have_run_out) {
    auto listener = listen();
    auto peers = connect(1);
    run([&]() -> task<> {
        {
            const testing::descriptor_limit none;
            EXPECT_EQ(error_of(listener.try_accept()), std::errc::operation_would_block);
            EXPECT_TRUE(listener.is_out_of_descriptors());
        }
        EXPECT_TRUE(co_await listener.accept());
        EXPECT_FALSE(listener.is_out_of_descriptors());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, listening_socket_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
