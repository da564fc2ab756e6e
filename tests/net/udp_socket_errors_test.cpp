// Errors that the network reports for datagrams sent: as results, and in the error queue.

#include <simplenet/net/udp_socket.hpp>

#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/udp_pair_test.hpp"

#include <simplenet/time/deadline.hpp>

#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::places;
using testing::turns;

class udp_socket_errors_test : public testing::udp_pair_test {};

TEST_P(udp_socket_errors_test, an_unreachable_peer_ends_a_waiting_receive_but_not_the_socket) {
    run([&]() -> task<> {
        const endpoint gone = nobody();
        auto socket = or_throw(udp_socket::connect(gone));
        auto waiting = spawn(
            [&]() -> task<result<udp_datagram>> { co_return co_await socket.receive(buffer_); });
        co_await turns(3);
        EXPECT_EQ(co_await socket.send("anybody?"), 8U);
        EXPECT_EQ(error_of(co_await waiting), std::errc::connection_refused);

        EXPECT_EQ(co_await socket.send("again"), 5U);
        EXPECT_EQ(error_of(co_await socket.send("and again")), std::errc::connection_refused);
        auto late = or_throw(udp_socket::bind(gone));
        EXPECT_EQ(co_await socket.send("now"), 3U);
        EXPECT_EQ((co_await late.receive_from(buffer_))->size, 3U);
        EXPECT_EQ(co_await late.send_to("yes", address_of(socket)), 3U);
        EXPECT_EQ((co_await socket.receive(buffer_))->size, 3U);
    });
}

TEST_P(udp_socket_errors_test, a_batch_to_an_unreachable_peer_fails_and_the_socket_stays_usable) {
    run([&]() -> task<> {
        const endpoint gone = nobody();
        auto socket = or_throw(udp_socket::connect(gone));
        const std::vector<outgoing_datagram> batch(5, {.data = "x"});
        static_cast<void>(co_await socket.send_batch(batch));
        // Whatever the kernel reported in between, the last error is reported here.
        EXPECT_EQ(error_of(co_await socket.receive(buffer_)), std::errc::connection_refused);
        auto late = or_throw(udp_socket::bind(gone));
        EXPECT_EQ(co_await socket.send_batch(batch), 5U);
        places<incoming_datagram> places{8, 8};
        EXPECT_EQ(co_await late.receive_batch(places.slots), 5U);
    });
}

TEST_P(udp_socket_errors_test, an_unconnected_socket_is_notified_only_on_request) {
    run([&]() -> task<> {
        const endpoint gone = nobody();
        EXPECT_TRUE(co_await one().send_to("x", gone));
        EXPECT_TRUE(co_await one().send_to("y", gone));
        EXPECT_EQ(error_of(one().take_error()), std::errc::operation_would_block);

        EXPECT_TRUE(one().set_receive_errors(true));
        EXPECT_TRUE(co_await one().send_to("z", gone));
        EXPECT_EQ(error_of(co_await one().receive_from(buffer_)), std::errc::connection_refused);
        const auto told = one().take_error();
        EXPECT_TRUE(told);
        EXPECT_EQ(told->code, std::errc::connection_refused);
        EXPECT_EQ(told->to, gone);
        EXPECT_EQ(error_of(one().take_error()), std::errc::operation_would_block);

        EXPECT_TRUE(co_await one().send_to("goes on", address_of(two())));
        EXPECT_EQ((co_await two().receive_from(buffer_))->size, 7U);
    });
}

// A nonempty error queue makes every poll(2) of the socket report POLLERR. With io_uring, a wait
// must not spin until take_error() is called.
TEST_P(udp_socket_errors_test, an_unread_error_queue_keeps_no_loop_awake) {
    run([&]() -> task<> {
        EXPECT_TRUE(one().set_receive_errors(true));
        EXPECT_TRUE(co_await one().send_to("x", nobody()));
        EXPECT_EQ(error_of(co_await one().receive_from(buffer_)), std::errc::connection_refused);

        const auto before = event_loop::current()->metrics().turns;
        for (int round = 0; round < 3; ++round) {
            EXPECT_EQ(error_of(co_await with_timeout(one().receive_from(buffer_), 20ms)),
                      errc::deadline_exceeded);
        }
        EXPECT_LT(event_loop::current()->metrics().turns - before, 40U);

        // Datagrams that arrive are received in any case, and so is the next error.
        for (int round = 0; round < 3; ++round) {
            EXPECT_TRUE(co_await two().send_to("early", address_of(one())));
            EXPECT_EQ((co_await one().receive_from(buffer_))->size, 5U);
            auto waiting = spawn([&]() -> task<result<udp_datagram>> {
                co_return co_await one().receive_from(buffer_);
            });
            co_await turns(3);
            EXPECT_FALSE(waiting.done());
            EXPECT_TRUE(co_await two().send_to("late", address_of(one())));
            EXPECT_EQ((co_await waiting)->size, 4U);
        }
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await one().receive_from(buffer_);
        });
        co_await turns(3);
        EXPECT_TRUE(co_await one().send_to("y", nobody()));
        EXPECT_EQ(error_of(co_await waiting), std::errc::connection_refused);
        int told = 0;
        while (one().take_error())
            ++told;
        EXPECT_EQ(told, 2);
    });
}

TEST_P(udp_socket_errors_test, close_ends_a_receive_beside_an_error_queue) {
    run([&]() -> task<> {
        EXPECT_TRUE(one().set_receive_errors(true));
        EXPECT_TRUE(co_await one().send_to("x", nobody()));
        EXPECT_EQ(error_of(co_await one().receive_from(buffer_)), std::errc::connection_refused);
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await one().receive_from(buffer_);
        });
        co_await turns(3);
        one().close();
        EXPECT_EQ(error_of(co_await waiting), canceled);
        EXPECT_TRUE(co_await one().closed());
    });
}

TEST_P(udp_socket_errors_test, a_loop_ends_with_a_receive_beside_an_error_queue) {
    loop().spawn([&]() -> task<> {
        EXPECT_TRUE(one().set_receive_errors(true));
        EXPECT_TRUE(co_await one().send_to("x", nobody()));
        EXPECT_EQ(error_of(co_await one().receive_from(buffer_)), std::errc::connection_refused);
        EXPECT_EQ(error_of(co_await one().receive_from(buffer_)), canceled);
    });
    EXPECT_FALSE(loop().run_for(20ms));
    destroy_loop();
}

INSTANTIATE_TEST_SUITE_P(backends, udp_socket_errors_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
