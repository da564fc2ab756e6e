#include <simplenet/blocking/tcp_stream.hpp>

#include "support/error_of.hpp"
#include "support/flavours.hpp"
#include "support/signal_storm.hpp"

#include <chrono>
#include <vector>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using namespace std::chrono_literals;
using blocking::tcp_listener;
using blocking::tcp_stream;

/// A listener whose backlog is full: further clients get no answer.
class silent_listener {
public:
    silent_listener() {
        for (int tries = 0; tries < 16; ++tries) {
            auto stream = nonblocking::tcp_stream::connect(endpoint_);
            const int fd = or_throw(stream).native_handle();
            waiting_.push_back(*std::move(stream));
            // Loopback: an answer, if any, has arrived when connect() returns.
            if (detail::sys::poll(fd, POLLOUT, std::chrono::steady_clock::now() + 20ms) == 0) {
                return;
            }
        }
        ADD_FAILURE() << "the backlog does not fill";
    }

    const simplenet::endpoint& endpoint() const { return endpoint_; }

private:
    tcp_listener listener_ = blocking_tcp::listen({.backlog = 1});
    simplenet::endpoint endpoint_ = blocking_tcp::address_of(listener_);
    std::vector<nonblocking::tcp_stream> waiting_;
};

TEST(tcp_stream_test, connect_makes_a_blocking_connection) {
    auto listener = blocking_tcp::listen();

    for (const std::optional<std::chrono::nanoseconds> timeout :
         {std::optional<std::chrono::nanoseconds>{}, {10s}, {std::chrono::nanoseconds::max()}}) {
        auto client = or_throw(tcp_stream::connect(blocking_tcp::address_of(listener), timeout));
        auto server = or_throw(listener.accept());

        EXPECT_TRUE(is_close_on_exec(client.native_handle()));
        EXPECT_FALSE(is_nonblocking(client.native_handle()));
        EXPECT_EQ(client.write_all("hello"), 5U);
        EXPECT_EQ(read_text(server, 5), "hello");
    }
}

TEST(tcp_stream_test, connect_speaks_ipv6) {
    auto listener = or_throw(tcp_listener::bind({ip_address::loopback_v6(), 0}));

    const auto client = or_throw(tcp_stream::connect(or_throw(listener.local_endpoint())));

    EXPECT_EQ(or_throw(client.remote_endpoint()), or_throw(listener.local_endpoint()));
}

TEST(tcp_stream_test, connect_reports_refusal) {
    auto listener = blocking_tcp::listen();
    const endpoint nobody = blocking_tcp::address_of(listener);
    listener.close();

    EXPECT_EQ(error_of(tcp_stream::connect(nobody)), std::errc::connection_refused);
    EXPECT_EQ(error_of(tcp_stream::connect(nobody, 10s)), std::errc::connection_refused);
}

TEST(tcp_stream_test, connect_reports_an_unreachable_address) {
    const endpoint everybody{or_throw(ip_address::parse("255.255.255.255")), 9};

    EXPECT_EQ(error_of(tcp_stream::connect(everybody)), std::errc::network_unreachable);
}

TEST(tcp_stream_test, connect_gives_up_at_its_deadline_and_not_earlier) {
    const silent_listener silent;
    const auto start = std::chrono::steady_clock::now();

    const auto error = error_of(tcp_stream::connect(silent.endpoint(), 30ms));

    EXPECT_EQ(error, errc::deadline_exceeded);
    EXPECT_EQ(error, std::errc::timed_out) << "the general question";
    EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
}

TEST(tcp_stream_test, connect_with_a_timeout_of_zero_does_not_wait) {
    const silent_listener silent;

    EXPECT_EQ(error_of(tcp_stream::connect(silent.endpoint(), 0s)), errc::deadline_exceeded);
    EXPECT_EQ(error_of(tcp_stream::connect(silent.endpoint(), -1s)), errc::deadline_exceeded);
}

TEST(tcp_stream_test, connect_keeps_its_deadline_when_interrupted) {
    const silent_listener silent;
    const auto start = std::chrono::steady_clock::now();
    const signal_storm storm{[] {}};

    EXPECT_EQ(error_of(tcp_stream::connect(silent.endpoint(), 30ms)), errc::deadline_exceeded);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
}

} // namespace
