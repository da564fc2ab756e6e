// The cost of a connection that comes alone on epoll: system calls and events, counted.
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"
#include "sys/seam.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/net/tcp_listener.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using testing::turns;
using testing::until;

class accept_counter final : public detail::sys::interceptor {
public:
    explicit accept_counter(const tcp_listener& listener) noexcept
        : listener_{listener.native_handle()} {}

    std::size_t accepted = 0;
    std::size_t found_none = 0; // calls that found no connection
    std::size_t looks = 0;      // whether there is one
    std::size_t events = 0;     // that epoll reported

private:
    long on_call(detail::sys::pending_call& call) noexcept override {
        const long outcome = call.make();
        switch (call.which()) {
        case detail::sys::call::accept:
            accepted += outcome >= 0;
            found_none += outcome == -EAGAIN;
            break;
        case detail::sys::call::poll:
            looks += call.argument<const pollfd*>(0)->fd == listener_;
            break;
        case detail::sys::call::epoll_wait:
        case detail::sys::call::epoll_pwait2:
            if (outcome > 0) events += static_cast<std::size_t>(outcome);
            break;
        default:
            break;
        }
        return outcome;
    }

    const int listener_;
};

class accept_cost_test : public testing::backend_test {
protected:
    [[nodiscard]] testing::raw_peer connect() const {
        auto stream = or_throw(blocking::tcp_stream::connect(or_throw(listener_.local_endpoint())));
        return testing::raw_peer{std::move(stream).release()};
    }
    /// Connections that wait to be accepted.
    [[nodiscard]] std::size_t backlog() const {
        tcp_info info{};
        socklen_t size = sizeof info;
        const int fd = listener_.native_handle();
        testing::checked(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
        return info.tcpi_unacked; // tcp_get_info() in the kernel
    }
    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
};

// A call that finds none costs as much as a ninth of a short connection.
TEST_P(accept_cost_test, a_connection_that_comes_alone_is_one_call) {
    run([&]() -> task<> {
        accept_counter counted{listener_};
        auto accept_two = [&]() -> task<> {
            EXPECT_TRUE(co_await listener_.accept());
            EXPECT_TRUE(co_await listener_.accept());
        };
        auto accepting = loop().spawn(accept_two);
        co_await turns(3); // the first attempt has found nothing
        const detail::sys::intercepting now{counted};

        const auto first = connect();
        co_await until([&] { return counted.accepted == 1; });
        co_await turns(3);
        const auto second = connect();
        co_await std::move(accepting);

        EXPECT_EQ(counted.accepted, 2U);
        EXPECT_EQ(counted.found_none, 0U);
        EXPECT_LE(counted.looks, 2U);
    });
}

TEST_P(accept_cost_test, connections_that_come_together_are_not_looked_for_one_by_one) {
    constexpr std::size_t number = 16;
    run([&]() -> task<> {
        std::vector<testing::raw_peer> clients;
        for (std::size_t each = 0; each < number; ++each)
            clients.push_back(connect());
        co_await until([&] { return backlog() == number; });
        accept_counter counted{listener_};
        const detail::sys::intercepting now{counted};

        for (std::size_t each = 0; each < number; ++each)
            EXPECT_TRUE(co_await listener_.accept());

        EXPECT_EQ(counted.accepted, number);
        EXPECT_LE(counted.looks, 1U);
    });
}

// Neither is the room for its first answer.
TEST_P(accept_cost_test, a_connection_whose_client_says_nothing_is_no_event) {
    auto client = connect();
    run([&]() -> task<> {
        auto accepted = co_await listener_.accept();
        EXPECT_TRUE(accepted);
        if (!accepted) co_return;
        auto read = [&]() -> task<> {
            std::array<std::byte, 16> into;
            EXPECT_EQ((co_await accepted->read_some(into)).error(), errc::end_of_stream);
        };
        auto reading = loop().spawn(read);
        accept_counter counted{listener_};
        {
            const detail::sys::intercepting now{counted};
            co_await turns(3);
        }
        EXPECT_EQ(counted.events, 0U);
        client.shutdown_write();
        co_await std::move(reading);
    });
}

// With io_uring the kernel accepts and tells by itself.
INSTANTIATE_TEST_SUITE_P(backends, accept_cost_test, ::testing::Values(backend::epoll),
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
