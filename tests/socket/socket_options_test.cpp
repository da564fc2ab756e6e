#include <simplenet/socket/socket_settings.hpp>

#include "support/error_of.hpp"
#include "support/flavours.hpp"

#include <chrono>
#include <limits>
#include <string>

#include <net/if.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using namespace std::chrono_literals;

// Each factory returns a new socket of a class that has the options under test.
template <class Flavour>
struct stream_maker {
    using socket = typename Flavour::stream;
    static socket make() { return make_connection<Flavour>().client; }
};
template <class Flavour>
struct listener_maker {
    using socket = typename Flavour::listener;
    static socket make() { return Flavour::listen(); }
};
template <class Socket>
struct udp_maker {
    using socket = Socket;
    static socket make() { return or_throw(Socket::bind(endpoint::loopback(0))); }
};

template <class Maker>
class every_socket_test : public ::testing::Test {
protected:
    typename Maker::socket socket_ = Maker::make();
};

using every_socket =
    ::testing::Types<stream_maker<blocking_tcp>, stream_maker<nonblocking_tcp>,
                     stream_maker<blocking_local>, stream_maker<nonblocking_local>,
                     listener_maker<blocking_tcp>, listener_maker<nonblocking_tcp>,
                     listener_maker<blocking_local>, listener_maker<nonblocking_local>,
                     udp_maker<blocking::udp_socket>, udp_maker<nonblocking::udp_socket>>;
TYPED_TEST_SUITE(every_socket_test, every_socket);

TYPED_TEST(every_socket_test, receive_buffer_is_about_twice_the_requested_size) {
    EXPECT_TRUE(this->socket_.set_receive_buffer(20'000));
    EXPECT_EQ(this->socket_.receive_buffer(), 40'000U);
}

TYPED_TEST(every_socket_test, send_buffer_is_about_twice_the_requested_size) {
    EXPECT_TRUE(this->socket_.set_send_buffer(20'000));
    EXPECT_EQ(this->socket_.send_buffer(), 40'000U);
}

TYPED_TEST(every_socket_test, buffer_sizes_beyond_every_limit_are_lowered) {
    EXPECT_TRUE(this->socket_.set_receive_buffer(std::numeric_limits<std::size_t>::max()));
    EXPECT_TRUE(this->socket_.set_send_buffer(std::numeric_limits<std::size_t>::max()));
    EXPECT_GT(this->socket_.receive_buffer().value(), 20'000U);
    EXPECT_GT(this->socket_.send_buffer().value(), 20'000U);
}

TYPED_TEST(every_socket_test, reuse_address_reads_back) {
    for (const bool on : {true, false}) {
        EXPECT_TRUE(this->socket_.set_reuse_address(on));
        EXPECT_EQ(this->socket_.reuse_address(), on);
    }
}

TYPED_TEST(every_socket_test, options_of_a_closed_socket_fail_with_bad_file_descriptor) {
    const auto expected = std::errc::bad_file_descriptor;
    auto& socket = this->socket_;
    socket.close();

    EXPECT_EQ(error_of(socket.set_receive_buffer(1)), expected);
    EXPECT_EQ(error_of(socket.receive_buffer()), expected);
    EXPECT_EQ(error_of(socket.set_send_buffer(1)), expected);
    EXPECT_EQ(error_of(socket.send_buffer()), expected);
    EXPECT_EQ(error_of(socket.set_reuse_address(true)), expected);
    EXPECT_EQ(error_of(socket.reuse_address()), expected);
}

template <class Maker>
class tcp_options_test : public every_socket_test<Maker> {};

using every_tcp_socket =
    ::testing::Types<stream_maker<blocking_tcp>, stream_maker<nonblocking_tcp>,
                     listener_maker<blocking_tcp>, listener_maker<nonblocking_tcp>>;
TYPED_TEST_SUITE(tcp_options_test, every_tcp_socket);

TYPED_TEST(tcp_options_test, no_delay_is_off_at_first_and_reads_back) {
    EXPECT_EQ(this->socket_.no_delay(), false);
    for (const bool on : {true, false}) {
        EXPECT_TRUE(this->socket_.set_no_delay(on));
        EXPECT_EQ(this->socket_.no_delay(), on);
    }
}

TYPED_TEST(tcp_options_test, keep_alive_is_off_at_first_and_reads_back) {
    EXPECT_EQ(this->socket_.keep_alive(), false);
    for (const bool on : {true, false}) {
        EXPECT_TRUE(this->socket_.set_keep_alive(on));
        EXPECT_EQ(this->socket_.keep_alive(), on);
    }
}

TYPED_TEST(tcp_options_test, keep_alive_timing_turns_probing_on_and_reads_back) {
    EXPECT_TRUE(this->socket_.set_keep_alive({.idle = 31s, .interval = 7s, .count = 4}));

    EXPECT_EQ(this->socket_.keep_alive(), true);
    const auto timing = or_throw(this->socket_.keep_alive_timing());
    EXPECT_EQ(timing.idle, 31s);
    EXPECT_EQ(timing.interval, 7s);
    EXPECT_EQ(timing.count, 4);
}

TYPED_TEST(tcp_options_test, keep_alive_timing_out_of_range_is_refused) {
    const auto expected = std::errc::invalid_argument;
    auto& socket = this->socket_;

    EXPECT_EQ(error_of(socket.set_keep_alive({.idle = 0s})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.idle = -1s})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.idle = 32768s})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.idle = std::chrono::seconds::max()})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.interval = 0s})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.interval = std::chrono::seconds::max()})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.count = 0})), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive({.count = 128})), expected);
    EXPECT_EQ(socket.keep_alive(), false);
}

TYPED_TEST(tcp_options_test, user_timeout_reads_back) {
    EXPECT_EQ(this->socket_.user_timeout(), 0ms);
    EXPECT_TRUE(this->socket_.set_user_timeout(1500ms));
    EXPECT_EQ(this->socket_.user_timeout(), 1500ms);
    EXPECT_TRUE(this->socket_.set_user_timeout(2s));
    EXPECT_EQ(this->socket_.user_timeout(), 2000ms);
    EXPECT_TRUE(this->socket_.set_user_timeout(0s));
    EXPECT_EQ(this->socket_.user_timeout(), 0ms);
}

TYPED_TEST(tcp_options_test, user_timeout_out_of_range_is_refused) {
    const auto expected = std::errc::invalid_argument;

    EXPECT_EQ(error_of(this->socket_.set_user_timeout(-1ms)), expected);
    EXPECT_EQ(error_of(this->socket_.set_user_timeout(std::chrono::milliseconds::max())), expected);
}

TYPED_TEST(tcp_options_test, linger_reads_back) {
    EXPECT_EQ(or_throw(this->socket_.linger()), std::nullopt);
    EXPECT_TRUE(this->socket_.set_linger(0s));
    EXPECT_EQ(or_throw(this->socket_.linger()), 0s);
    EXPECT_TRUE(this->socket_.set_linger(3s));
    EXPECT_EQ(or_throw(this->socket_.linger()), 3s);
    EXPECT_TRUE(this->socket_.set_linger(std::nullopt));
    EXPECT_EQ(or_throw(this->socket_.linger()), std::nullopt);
}

TYPED_TEST(tcp_options_test, linger_out_of_range_is_refused) {
    const auto expected = std::errc::invalid_argument;

    EXPECT_EQ(error_of(this->socket_.set_linger(-1s)), expected);
    EXPECT_EQ(error_of(this->socket_.set_linger(std::chrono::seconds::max())), expected);
}

TYPED_TEST(tcp_options_test, options_of_a_closed_socket_fail_with_bad_file_descriptor) {
    const auto expected = std::errc::bad_file_descriptor;
    auto& socket = this->socket_;
    socket.close();

    EXPECT_EQ(error_of(socket.set_no_delay(true)), expected);
    EXPECT_EQ(error_of(socket.no_delay()), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive(true)), expected);
    EXPECT_EQ(error_of(socket.set_keep_alive(keep_alive_options{})), expected);
    EXPECT_EQ(error_of(socket.keep_alive()), expected);
    EXPECT_EQ(error_of(socket.keep_alive_timing()), expected);
    EXPECT_EQ(error_of(socket.set_user_timeout(1s)), expected);
    EXPECT_EQ(error_of(socket.user_timeout()), expected);
    EXPECT_EQ(error_of(socket.set_linger(0s)), expected);
    EXPECT_EQ(error_of(socket.linger()), expected);
}

template <class Flavour>
class inherited_options_test : public ::testing::Test {};

using tcp_flavours = ::testing::Types<blocking_tcp, nonblocking_tcp>;
TYPED_TEST_SUITE(inherited_options_test, tcp_flavours, flavour_name);

TYPED_TEST(inherited_options_test, accepted_connections_have_the_options_of_their_listener) {
    auto listener = TypeParam::listen({.receive_buffer = 30'000, .send_buffer = 20'000});
    EXPECT_TRUE(listener.set_no_delay(true));
    EXPECT_TRUE(listener.set_keep_alive({.idle = 33s}));

    const auto client = connect_to<TypeParam>(listener);
    const auto accepted = accept_one(listener);

    EXPECT_EQ(accepted.receive_buffer(), 60'000U);
    EXPECT_EQ(accepted.send_buffer(), 40'000U);
    EXPECT_EQ(accepted.no_delay(), true);
    EXPECT_EQ(accepted.keep_alive(), true);
    EXPECT_EQ(accepted.keep_alive_timing()->idle, 33s);
}

TYPED_TEST(inherited_options_test, closing_with_linger_zero_resets_the_connection) {
    auto [client, server] = make_connection<TypeParam>();
    EXPECT_TRUE(client.set_linger(0s));

    client.close();

    EXPECT_EQ(read_to_the_end(server), std::errc::connection_reset);
}

template <class Maker>
class udp_options_test : public every_socket_test<Maker> {
protected:
    const unsigned loopback_ = ::if_nametoindex("lo");
    const ip_address group_ = or_throw(ip_address::parse("239.255.7.9"));
};

using every_udp_socket =
    ::testing::Types<udp_maker<blocking::udp_socket>, udp_maker<nonblocking::udp_socket>>;
TYPED_TEST_SUITE(udp_options_test, every_udp_socket);

TYPED_TEST(udp_options_test, broadcast_is_off_at_first_and_reads_back) {
    EXPECT_EQ(this->socket_.broadcast(), false);
    for (const bool on : {true, false}) {
        EXPECT_TRUE(this->socket_.set_broadcast(on));
        EXPECT_EQ(this->socket_.broadcast(), on);
    }
}

TYPED_TEST(udp_options_test, multicast_settings_read_back) {
    EXPECT_EQ(this->socket_.multicast_loopback(), true);
    EXPECT_TRUE(this->socket_.set_multicast_loopback(false));
    EXPECT_EQ(this->socket_.multicast_loopback(), false);

    EXPECT_EQ(this->socket_.multicast_hops(), 1);
    EXPECT_TRUE(this->socket_.set_multicast_hops(0));
    EXPECT_EQ(this->socket_.multicast_hops(), 0);
    EXPECT_TRUE(this->socket_.set_multicast_hops(255));
    EXPECT_EQ(this->socket_.multicast_hops(), 255);

    EXPECT_TRUE(this->socket_.set_multicast_interface(this->loopback_));
}

TYPED_TEST(udp_options_test, multicast_settings_read_back_for_ipv6) {
    auto socket = or_throw(TypeParam::socket::open_v6());

    EXPECT_TRUE(socket.set_multicast_loopback(false));
    EXPECT_EQ(socket.multicast_loopback(), false);
    EXPECT_TRUE(socket.set_multicast_hops(7));
    EXPECT_EQ(socket.multicast_hops(), 7);
    EXPECT_TRUE(socket.set_multicast_interface(this->loopback_));
}

TYPED_TEST(udp_options_test, multicast_settings_out_of_range_are_refused) {
    EXPECT_EQ(error_of(this->socket_.set_multicast_hops(-1)), std::errc::invalid_argument);
    EXPECT_EQ(error_of(this->socket_.set_multicast_hops(256)), std::errc::invalid_argument);
    EXPECT_TRUE(error_of(this->socket_.set_multicast_interface(0x7fff'ffff)));
}

TYPED_TEST(udp_options_test, groups_are_joined_once_and_left_once) {
    auto& socket = this->socket_;

    EXPECT_TRUE(socket.join_group(this->group_, this->loopback_));
    EXPECT_EQ(error_of(socket.join_group(this->group_, this->loopback_)),
              std::errc::address_in_use);
    EXPECT_TRUE(socket.leave_group(this->group_, this->loopback_));
    EXPECT_EQ(error_of(socket.leave_group(this->group_, this->loopback_)),
              std::errc::address_not_available);
}

TYPED_TEST(udp_options_test, ipv6_groups_take_the_interface_from_their_scope) {
    auto socket = or_throw(TypeParam::socket::open_v6());
    const auto group = or_throw(ip_address::parse("ff01::789%" + std::to_string(this->loopback_)));

    EXPECT_TRUE(socket.join_group(group));
    EXPECT_TRUE(socket.leave_group(group, this->loopback_));
}

TYPED_TEST(udp_options_test, joining_an_address_that_is_not_multicast_is_refused) {
    EXPECT_EQ(error_of(this->socket_.join_group(ip_address::loopback_v4(), this->loopback_)),
              std::errc::invalid_argument);
    EXPECT_EQ(error_of(this->socket_.join_group(this->group_, 0x7fff'ffff)),
              std::errc::no_such_device);
}

TYPED_TEST(udp_options_test, options_of_a_closed_socket_fail_with_bad_file_descriptor) {
    const auto expected = std::errc::bad_file_descriptor;
    auto& socket = this->socket_;
    socket.close();

    EXPECT_EQ(error_of(socket.set_broadcast(true)), expected);
    EXPECT_EQ(error_of(socket.broadcast()), expected);
    EXPECT_EQ(error_of(socket.join_group(this->group_)), expected);
    EXPECT_EQ(error_of(socket.leave_group(this->group_)), expected);
    EXPECT_EQ(error_of(socket.set_multicast_loopback(true)), expected);
    EXPECT_EQ(error_of(socket.multicast_loopback()), expected);
    EXPECT_EQ(error_of(socket.set_multicast_hops(1)), expected);
    EXPECT_EQ(error_of(socket.multicast_hops()), expected);
    EXPECT_EQ(error_of(socket.set_multicast_interface(0)), expected);
}

} // namespace
