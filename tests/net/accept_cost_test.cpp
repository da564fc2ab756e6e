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

namespace simplenet::v0 {
namespace {

using testing::turns;

class accept_counter final : public detail::sys::interceptor {
public:
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
            ++looks;
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
};

class accept_cost_test : public testing::backend_test {
protected:
    [[nodiscard]] testing::raw_peer connect() const {
        auto stream = or_throw(blocking::tcp_stream::connect(or_throw(listener_.local_endpoint())));
        return testing::raw_peer{std::move(stream).release()};
    }
    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
};

// accept4(2) makes a socket and a file before it finds nothing, so that a second call for each
// connection was a ninth of what it costs to serve one.
TEST_P(accept_cost_test, a_connection_that_comes_alone_is_one_call) {
    run([&]() -> task<> {
        accept_counter counted;
        auto accept_two = [&]() -> task<> {
            EXPECT_TRUE(co_await listener_.accept());
            EXPECT_TRUE(co_await listener_.accept());
        };
        auto accepting = loop().spawn(accept_two);
        co_await turns(3); // the first attempt has found nothing
        const detail::sys::intercepting now{counted};

        const auto first = connect();
        co_await turns(3);
        EXPECT_EQ(counted.accepted, 1U);
        const auto second = connect();
        co_await std::move(accepting);

        EXPECT_EQ(counted.accepted, 2U);
        EXPECT_EQ(counted.found_none, 0U);
    });
}

TEST_P(accept_cost_test, connections_that_come_together_are_not_looked_for_one_by_one) {
    constexpr std::size_t number = 16;
    run([&]() -> task<> {
        std::vector<testing::raw_peer> clients;
        for (std::size_t each = 0; each < number; ++each)
            clients.push_back(connect());
        accept_counter counted;
        const detail::sys::intercepting now{counted};

        for (std::size_t each = 0; each < number; ++each)
            EXPECT_TRUE(co_await listener_.accept());

        EXPECT_EQ(counted.accepted, number);
        EXPECT_LE(counted.looks, 1U);
    });
}

// There is room for a first answer, of which epoll told.
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
        accept_counter counted;
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
