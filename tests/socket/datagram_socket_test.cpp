#include <simplenet/socket/datagram_socket.hpp>

#include "socket/datagrams.hpp"
#include "support/error_of.hpp"
#include "support/flavours.hpp"
#include "support/signal_storm.hpp"

#include <array>
#include <string>
#include <vector>

#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

template <class Socket>
class datagram_socket_test : public ::testing::Test {
protected:
    static Socket bound() { return or_throw(Socket::bind(endpoint::loopback(0))); }
    static endpoint address_of(const Socket& socket) { return or_throw(socket.local_endpoint()); }

    static result<udp_datagram> receive(Socket& socket, mutable_buffer into) {
        return eventually(socket.native_handle(), POLLIN, [&] { return socket.receive(into); });
    }

    /// A port without a socket.
    static endpoint nobody() { return address_of(bound()); }

    Socket one_ = bound();
    Socket two_ = bound();
    std::array<char, 16> buffer_{};
};

using udp_sockets = ::testing::Types<blocking::udp_socket, nonblocking::udp_socket>;
TYPED_TEST_SUITE(datagram_socket_test, udp_sockets);

TYPED_TEST(datagram_socket_test, a_datagram_arrives_with_its_sender) {
    EXPECT_EQ(this->one_.send_to("hello", this->address_of(this->two_)), 5U);

    EXPECT_EQ(this->receive(this->two_, this->buffer_),
              (udp_datagram{.size = 5, .from = this->address_of(this->one_), .truncated = false}));
    EXPECT_EQ(std::string_view(this->buffer_.data(), 5), "hello");
}

TYPED_TEST(datagram_socket_test, an_empty_datagram_is_a_success_of_size_0) {
    EXPECT_EQ(this->one_.send_to(const_buffer{}, this->address_of(this->two_)), 0U);

    EXPECT_EQ(this->receive(this->two_, this->buffer_),
              (udp_datagram{.size = 0, .from = this->address_of(this->one_), .truncated = false}));
}

TYPED_TEST(datagram_socket_test, a_datagram_longer_than_the_buffer_is_marked_truncated) {
    EXPECT_TRUE(this->one_.send_to(std::string(17, 'x'), this->address_of(this->two_)));
    EXPECT_TRUE(this->one_.send_to(std::string(16, 'y'), this->address_of(this->two_)));

    EXPECT_EQ(
        this->receive(this->two_, this->buffer_),
        (udp_datagram{
            .size = 16, .from = this->address_of(this->one_), .truncated = true, .missing = 1}));
    EXPECT_EQ(this->receive(this->two_, this->buffer_),
              (udp_datagram{.size = 16, .from = this->address_of(this->one_), .truncated = false}));
    EXPECT_EQ(this->buffer_[0], 'y') << "the rest of the first one is lost";
}

TYPED_TEST(datagram_socket_test, receiving_into_an_empty_buffer_is_a_contract_violation) {
    EXPECT_DEATH((void)this->one_.receive_from(mutable_buffer{}), "contract violation");
    EXPECT_DEATH((void)this->one_.receive(mutable_buffer{}), "contract violation");
}

TYPED_TEST(datagram_socket_test, a_datagram_that_is_too_long_is_refused) {
    const std::vector<std::byte> huge(70'000);

    EXPECT_EQ(error_of(this->one_.send_to(huge, this->address_of(this->two_))),
              std::errc::message_size);
}

TYPED_TEST(datagram_socket_test, a_broadcast_address_needs_the_option) {
    const endpoint everybody{or_throw(ip_address::parse("255.255.255.255")), 9};

    EXPECT_EQ(error_of(this->one_.send_to("x", everybody)), std::errc::permission_denied);
    EXPECT_EQ(error_of(this->one_.connect_to(everybody)), std::errc::permission_denied);
}

TYPED_TEST(datagram_socket_test, an_ipv4_socket_cannot_reach_an_ipv6_peer) {
    const endpoint peer{ip_address::loopback_v6(), 9};

    EXPECT_EQ(error_of(this->one_.send_to("x", peer)), std::errc::address_family_not_supported);
    EXPECT_EQ(error_of(this->one_.connect_to(peer)), std::errc::address_family_not_supported);
}

TYPED_TEST(datagram_socket_test, an_ipv6_socket_reaches_ipv4_peers_unless_it_is_ipv6_only) {
    auto both = or_throw(TypeParam::bind(endpoint{ip_address::any_v6(), 0}));
    auto six = or_throw(TypeParam::bind(endpoint{ip_address::any_v6(), 0}, {.v6_only = true}));

    EXPECT_EQ(both.send_to("x", this->address_of(this->one_)), 1U);
    EXPECT_EQ(this->receive(this->one_, this->buffer_)->from.port(), this->address_of(both).port());
    EXPECT_EQ(error_of(six.send_to("x", this->address_of(this->one_))),
              std::errc::network_unreachable);
}

TYPED_TEST(datagram_socket_test, send_without_a_peer_is_refused) {
    EXPECT_EQ(error_of(this->one_.send("x")), std::errc::destination_address_required);
}

TYPED_TEST(datagram_socket_test, a_connected_socket_exchanges_datagrams_only_with_its_peer) {
    auto stranger = this->bound();
    EXPECT_TRUE(this->one_.connect_to(this->address_of(this->two_)));
    EXPECT_EQ(this->one_.remote_endpoint(), this->address_of(this->two_));

    EXPECT_EQ(this->one_.send("question"), 8U);
    EXPECT_EQ(this->receive(this->two_, this->buffer_)->size, 8U);
    EXPECT_TRUE(stranger.send_to("noise", this->address_of(this->one_)));
    EXPECT_TRUE(this->two_.send_to("answer", this->address_of(this->one_)));

    EXPECT_EQ(this->receive(this->one_, this->buffer_)->from, this->address_of(this->two_));
    EXPECT_EQ(std::string_view(this->buffer_.data(), 6), "answer");
}

TYPED_TEST(datagram_socket_test, a_disconnected_socket_receives_from_everyone_again) {
    const endpoint by_number = this->nobody();
    auto socket = or_throw(TypeParam::bind(by_number));
    EXPECT_TRUE(socket.connect_to(this->address_of(this->one_)));
    EXPECT_TRUE(socket.disconnect());

    EXPECT_EQ(error_of(socket.remote_endpoint()), std::errc::not_connected);
    EXPECT_TRUE(this->two_.send_to("hi", by_number));
    EXPECT_EQ(this->receive(socket, this->buffer_)->from, this->address_of(this->two_));
}

TYPED_TEST(datagram_socket_test,
           an_unreachable_peer_is_reported_later_and_the_socket_stays_usable) {
    EXPECT_TRUE(this->one_.connect_to(this->nobody()));
    EXPECT_EQ(this->one_.send("is anybody there"), 16U);

    // Loopback: the reply has arrived when send returns.
    EXPECT_EQ(error_of(this->receive(this->one_, this->buffer_)), std::errc::connection_refused);
    EXPECT_EQ(this->one_.send("again"), 5U);
    EXPECT_EQ(error_of(this->one_.send("and again")), std::errc::connection_refused);

    EXPECT_TRUE(this->one_.connect_to(this->address_of(this->two_)));
    EXPECT_EQ(this->one_.send("hello"), 5U);
    EXPECT_EQ(this->receive(this->two_, this->buffer_)->size, 5U);
}

TYPED_TEST(datagram_socket_test, receive_waits_only_if_the_socket_is_blocking) {
    if constexpr (std::is_same_v<TypeParam, blocking::udp_socket>) {
        const signal_storm storm{
            [this] { EXPECT_TRUE(this->two_.send_to("!", this->address_of(this->one_))); }};
        EXPECT_EQ(this->one_.receive_from(this->buffer_)->size, 1U);
    } else {
        EXPECT_EQ(error_of(this->one_.receive_from(this->buffer_)),
                  std::errc::operation_would_block);
        EXPECT_EQ(error_of(this->one_.receive(this->buffer_)), std::errc::operation_would_block);
    }
}

TYPED_TEST(datagram_socket_test, members_of_a_group_receive_what_is_sent_to_it) {
    const unsigned loopback = ::if_nametoindex("lo");
    const auto group = or_throw(ip_address::parse("239.255.7.9"));
    auto member = or_throw(TypeParam::bind(endpoint::any(0), {.reuse_address = true}));
    ASSERT_TRUE(member.join_group(group, loopback)); // otherwise receiving would wait for ever
    EXPECT_TRUE(this->one_.set_multicast_interface(loopback));
    EXPECT_TRUE(this->one_.set_multicast_hops(0));

    EXPECT_EQ(this->one_.send_to("all", {group, this->address_of(member).port()}), 3U);

    EXPECT_EQ(this->receive(member, this->buffer_)->size, 3U);
}

TYPED_TEST(datagram_socket_test, a_batch_is_sent_and_received_in_order) {
    std::vector<std::string> texts;
    std::vector<outgoing_datagram> batch;
    for (int at = 0; at < 100; ++at) // more than one call accepts
        texts.push_back(std::to_string(at));
    for (const std::string& text : texts)
        batch.push_back({.data = text, .to = this->address_of(this->two_)});
    EXPECT_EQ(this->one_.send_batch(batch), 100U);

    std::array<std::array<char, 4>, 70> memory{};
    std::array<incoming_datagram, 70> places{};
    for (std::size_t at = 0; at < places.size(); ++at)
        places[at].into = memory[at];
    std::size_t got = 0;
    while (got < texts.size()) {
        const auto count = eventually(this->two_.native_handle(), POLLIN,
                                      [&] { return this->two_.receive_batch(places); });
        ASSERT_TRUE(count);
        for (std::size_t at = 0; at < *count; ++at, ++got) {
            EXPECT_EQ(std::string_view(memory[at].data(), places[at].data().size()), texts[got]);
            EXPECT_EQ(places[at].about.from, this->address_of(this->one_));
        }
    }
}

TYPED_TEST(datagram_socket_test, an_error_in_the_middle_of_a_batch_says_how_many_were_sent) {
    const std::string huge(70'000, 'x');
    const std::array<outgoing_datagram, 3> batch{
        {{.data = "1", .to = this->address_of(this->two_)},
         {.data = huge, .to = this->address_of(this->two_)},
         {.data = "3", .to = this->address_of(this->two_)}}};

    const auto sent = this->one_.send_batch(batch);

    EXPECT_EQ(error_of(sent), std::errc::message_size);
    EXPECT_EQ(sent.error().transferred, 1U);
    EXPECT_EQ(this->one_.send_batch({}), 0U);
}

TYPED_TEST(datagram_socket_test, segments_are_cut_by_the_kernel_or_sent_one_by_one) {
    const std::string text(250, 's');
    for (const bool kernel_can : {true, false}) {
        const int no_checksums = !kernel_can; // which makes the kernel refuse
        ASSERT_EQ(::setsockopt(this->one_.native_handle(), SOL_SOCKET, SO_NO_CHECK, &no_checksums,
                               sizeof no_checksums),
                  0);
        EXPECT_EQ(this->one_.send_segmented(text, 100, this->address_of(this->two_)), 250U);
        std::array<char, 512> into;
        for (const std::size_t size : {100U, 100U, 50U}) {
            EXPECT_EQ(eventually(this->two_.native_handle(), POLLIN,
                                 [&] { return this->two_.receive_from(into); })
                          ->size,
                      size);
        }
    }
    EXPECT_DEATH((void)this->one_.send_segmented(text, 0), "contract violation");
}

// State that the sockets share: each keeps a limit of its own.
// GCC's -Wextra must not warn programs about members left to their defaults.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
[[maybe_unused]] const outgoing_datagram no_options{.data = "text", .to = endpoint::loopback(1)};
[[maybe_unused]] const outgoing_datagram only_data{.data = "text"};
[[maybe_unused]] const outgoing_message no_name{.data = "text"};
[[maybe_unused]] const incoming_datagram a_place{.into = {}};
[[maybe_unused]] const incoming_message a_local_place{.into = {}};
[[maybe_unused]] const udp_send_options only_from{.from = ip_address::loopback_v4()};
[[maybe_unused]] const udp_send_options only_ecn{.ecn = ecn::ect_0};
#pragma GCC diagnostic pop

TEST(send_segments_test, a_socket_does_not_try_segmentation_again_after_a_refusal) {
    auto receiver = or_throw(nonblocking::udp_socket::bind({ip_address::loopback_v6(), 0}));
    auto sender = or_throw(nonblocking::udp_socket::connect(or_throw(receiver.local_endpoint())));
    const int mtu = 1280; // simulates a route with this limit
    ASSERT_EQ(::setsockopt(sender.native_handle(), IPPROTO_IPV6, IPV6_MTU, &mtu, sizeof mtu), 0);
    const std::vector<std::byte> bytes(6000);
    detail::segment_limit limit;
    const auto send = [&](std::size_t segment_size) {
        return detail::datagrams::send_segments(sender.native_handle(), bytes, segment_size,
                                                nullptr, {}, limit);
    };

    EXPECT_EQ(send(1000), 6000);
    EXPECT_EQ(limit.get(), detail::segment_limit::none);
    EXPECT_EQ(send(2000), 6000);
    EXPECT_EQ(limit.get(), 1999U) << "shorter ones are still worth a try";
    EXPECT_EQ(send(1000), 6000);
    EXPECT_EQ(limit.get(), 1999U);

    const int on = 1; // segmentation needs checksums
    ASSERT_EQ(::setsockopt(sender.native_handle(), IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof on),
              0);
    EXPECT_EQ(send(1000), 6000);
    EXPECT_EQ(limit.get(), 0U);
    EXPECT_EQ(send(1000), 6000);

    limit.set(detail::segment_limit::none);
    sender.close();
    EXPECT_EQ(send(1000), -EBADF);
    EXPECT_EQ(limit.get(), detail::segment_limit::none) << "the error was not about segments";
}

TYPED_TEST(datagram_socket_test, operations_on_a_closed_socket_fail_with_bad_file_descriptor) {
    const auto expected = std::errc::bad_file_descriptor;
    this->one_.close();

    EXPECT_EQ(error_of(this->one_.send_to("x", endpoint::loopback(9))), expected);
    EXPECT_EQ(error_of(this->one_.send("x")), expected);
    EXPECT_EQ(error_of(this->one_.receive_from(this->buffer_)), expected);
    EXPECT_EQ(error_of(this->one_.receive(this->buffer_)), expected);
    EXPECT_EQ(error_of(this->one_.connect_to(endpoint::loopback(9))), expected);
    EXPECT_EQ(error_of(this->one_.disconnect()), expected);
}

} // namespace
