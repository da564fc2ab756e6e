// The construction of the UDP sockets of both layers; datagram_socket_test has the rest.

#include "support/error_of.hpp"
#include "support/flavours.hpp"

#include <array>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

template <class Socket>
class udp_socket_test : public ::testing::Test {
protected:
    static constexpr bool nonblocking = std::is_same_v<Socket, nonblocking::udp_socket>;
};
using udp_sockets = ::testing::Types<blocking::udp_socket, nonblocking::udp_socket>;
TYPED_TEST_SUITE(udp_socket_test, udp_sockets);

TYPED_TEST(udp_socket_test, every_descriptor_is_close_on_exec_and_in_the_mode_of_its_layer) {
    const auto bound = or_throw(TypeParam::bind(endpoint::loopback(0)));
    const auto connected = or_throw(TypeParam::connect(or_throw(bound.local_endpoint())));
    const auto four = or_throw(TypeParam::open_v4());
    const auto six = or_throw(TypeParam::open_v6());

    for (const int fd : {bound.native_handle(), connected.native_handle(), four.native_handle(),
                         six.native_handle()}) {
        EXPECT_TRUE(is_close_on_exec(fd));
        EXPECT_EQ(is_nonblocking(fd), TestFixture::nonblocking);
    }
}

TYPED_TEST(udp_socket_test, connect_makes_a_socket_of_the_family_of_its_peer) {
    for (const auto& address : {ip_address::loopback_v4(), ip_address::loopback_v6()}) {
        auto peer = or_throw(TypeParam::bind({address, 0}));
        auto socket = or_throw(TypeParam::connect(or_throw(peer.local_endpoint())));
        std::array<char, 8> buffer;

        EXPECT_EQ(socket.send("hi"), 2U);
        EXPECT_EQ(
            eventually(peer.native_handle(), POLLIN, [&] { return peer.receive_from(buffer); })
                ->from,
            or_throw(socket.local_endpoint()));
    }
}

TYPED_TEST(udp_socket_test, connect_to_a_broadcast_address_is_refused) {
    const endpoint everybody{or_throw(ip_address::parse("255.255.255.255")), 9};

    EXPECT_EQ(error_of(TypeParam::connect(everybody)), std::errc::permission_denied);
}

TYPED_TEST(udp_socket_test, an_unbound_socket_gets_its_address_by_sending) {
    auto peer = or_throw(TypeParam::bind(endpoint::loopback(0)));
    auto socket = or_throw(TypeParam::open_v4());
    EXPECT_EQ(socket.local_endpoint()->port(), 0);

    EXPECT_TRUE(socket.send_to("hi", or_throw(peer.local_endpoint())));

    EXPECT_NE(socket.local_endpoint()->port(), 0);
}

TYPED_TEST(udp_socket_test, binding_a_port_that_is_taken_reports_address_in_use) {
    const auto first = or_throw(TypeParam::bind(endpoint::loopback(0)));

    EXPECT_EQ(error_of(TypeParam::bind(or_throw(first.local_endpoint()))),
              std::errc::address_in_use);
}

TYPED_TEST(udp_socket_test, binding_an_address_of_another_machine_is_reported) {
    const endpoint elsewhere{or_throw(ip_address::parse("198.51.100.1")), 0}; // RFC 5737

    EXPECT_EQ(error_of(TypeParam::bind(elsewhere)), std::errc::address_not_available);
}

TYPED_TEST(udp_socket_test, sockets_share_a_port_if_both_allow_it) {
    for (const udp_options& options :
         {udp_options{.reuse_port = true}, udp_options{.reuse_address = true}}) {
        const auto first = or_throw(TypeParam::bind(endpoint::loopback(0), options));
        const endpoint at = or_throw(first.local_endpoint());

        EXPECT_TRUE(TypeParam::bind(at, options));
        EXPECT_EQ(error_of(TypeParam::bind(at)), std::errc::address_in_use);
    }
}

TYPED_TEST(udp_socket_test, an_ipv6_socket_leaves_the_ipv4_port_free_only_if_it_is_ipv6_only) {
    const auto six = or_throw(TypeParam::bind({ip_address::any_v6(), 0}, {.v6_only = true}));
    const auto both = or_throw(TypeParam::bind({ip_address::any_v6(), 0}));

    EXPECT_TRUE(TypeParam::bind(endpoint::any(six.local_endpoint()->port())));
    EXPECT_EQ(error_of(TypeParam::bind(endpoint::any(both.local_endpoint()->port()))),
              std::errc::address_in_use);
}

} // namespace
