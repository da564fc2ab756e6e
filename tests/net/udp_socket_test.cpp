#include <simplenet/net/udp_socket.hpp>

#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/udp_pair_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <net/if.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::dice;
using testing::noise;
using testing::places;
using testing::text_of;
using testing::turns;

class udp_socket_test : public testing::udp_pair_test {};

TEST_P(udp_socket_test, a_datagram_arrives_with_its_sender) {
    run([&]() -> task<> {
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await two().receive_from(buffer_);
        });
        co_await turns(3);
        EXPECT_EQ(co_await one().send_to("hello", address_of(two())), 5U);
        EXPECT_EQ(co_await waiting,
                  (udp_datagram{.size = 5, .from = address_of(one()), .truncated = false}));
        EXPECT_EQ(std::string_view(buffer_.data(), 5), "hello");
    });
}

TEST_P(udp_socket_test, an_empty_datagram_is_not_the_end_of_the_stream) {
    run([&]() -> task<> {
        EXPECT_EQ(co_await one().send_to(const_buffer{}, address_of(two())), 0U);
        EXPECT_EQ(co_await one().send_to("next", address_of(two())), 4U);
        const auto empty = co_await two().receive_from(buffer_);
        EXPECT_TRUE(empty && empty->size == 0 && !empty->truncated);
        EXPECT_TRUE(empty && empty->from == address_of(one()));
        EXPECT_EQ((co_await two().receive_from(buffer_))->size, 4U);
    });
}

TEST_P(udp_socket_test, a_truncated_datagram_is_marked) {
    run([&]() -> task<> {
        EXPECT_TRUE(co_await one().send_to(std::string(100, 'x'), address_of(two())));
        EXPECT_TRUE(co_await one().send_to("whole", address_of(two())));
        const auto cut = co_await two().receive_from(buffer_);
        EXPECT_TRUE(cut && cut->truncated);
        EXPECT_EQ(cut->size, buffer_.size());
        EXPECT_EQ(cut->missing, 100 - buffer_.size());
        const auto whole = co_await two().receive_from(buffer_);
        EXPECT_TRUE(whole && !whole->truncated && whole->size == 5 && whole->missing == 0);
    });
}

TEST_P(udp_socket_test, a_datagram_that_is_too_long_is_refused_and_the_socket_stays_usable) {
    run([&]() -> task<> {
        const std::string most(65'507, 'm');
        EXPECT_EQ(error_of(co_await one().send_to(std::string(65'508, 'x'), address_of(two()))),
                  std::errc::message_size);
        EXPECT_EQ(co_await one().send_to(most, address_of(two())), most.size());
        std::string into(most.size(), '\0');
        EXPECT_EQ((co_await two().receive_from(into))->size, most.size());
        EXPECT_TRUE(into == most);
    });
}

// --- stops, deadlines, close

TEST_P(udp_socket_test, a_stopped_receive_leaves_the_datagram_to_the_next) {
    run([&]() -> task<> {
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await two().receive_from(buffer_);
        });
        co_await turns(3);
        waiting.request_stop();
        EXPECT_TRUE(co_await one().send_to("kept", address_of(two())));
        const auto stopped = co_await waiting;
        // Success beats a stop: the datagram is either in one or in the other.
        if (stopped) {
            EXPECT_EQ(stopped->size, 4U);
        } else {
            EXPECT_EQ(error_of(stopped), canceled);
            EXPECT_EQ((co_await two().receive_from(buffer_))->size, 4U);
        }
    });
}

TEST_P(udp_socket_test, racing_stops_and_deadlines_lose_no_datagram) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        dice dice{seed};
        run([&]() -> task<> {
            constexpr std::size_t total = 60;
            auto sender = spawn([&]() -> task<> {
                for (std::size_t at = 0; at < total; ++at) {
                    co_await turns(static_cast<int>(dice.up_to(3)));
                    const std::string text = std::to_string(at);
                    EXPECT_TRUE(co_await one().send_to(text, address_of(two())));
                }
            });
            std::size_t got = 0;
            places<incoming_datagram> places{4, 8};
            while (got < total) {
                std::size_t count = 0;
                auto receiver = spawn([&]() -> task<result<>> {
                    auto limit = dice.one_in(2) ? std::chrono::nanoseconds{0} : 50us;
                    if (dice.one_in(2)) {
                        const auto batch =
                            co_await with_timeout(two().receive_batch(places.slots), limit);
                        if (!batch) co_return fail(batch);
                        count = *batch;
                    } else {
                        auto& slot = places.slots[0];
                        const auto single =
                            co_await with_timeout(two().receive_from(slot.into), limit);
                        if (!single) co_return fail(single);
                        slot.about = *single;
                        count = 1;
                    }
                    co_return {};
                });
                co_await turns(static_cast<int>(dice.up_to(3)));
                receiver.request_stop();
                static_cast<void>(co_await receiver);
                for (std::size_t at = 0; at < count; ++at, ++got)
                    EXPECT_EQ(text_of(places.slots[at].data()), std::to_string(got));
            }
            co_await sender;
        });
    }
}

TEST_P(udp_socket_test, a_waiting_datagram_beats_a_deadline_that_has_passed) {
    run([&]() -> task<> {
        EXPECT_TRUE(co_await one().send_to("there", address_of(two())));
        EXPECT_EQ((co_await with_timeout(two().receive_from(buffer_), -1h))->size, 5U);
        EXPECT_EQ(error_of(co_await with_timeout(two().receive_from(buffer_), 0s)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(two().receive_from(buffer_), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_TRUE(co_await one().send_to("again", address_of(two())));
        EXPECT_EQ(
            (co_await with_timeout(two().receive_from(buffer_), std::chrono::nanoseconds::max()))
                ->size,
            5U);
    });
}

TEST_P(udp_socket_test, a_stopped_scope_refuses_and_consumes_nothing) {
    run([&]() -> task<> {
        EXPECT_TRUE(co_await one().send_to("kept", address_of(two())));
        auto child = spawn([&]() -> task<> {
            co_await yield();
            EXPECT_EQ(error_of(co_await two().receive_from(buffer_)), canceled);
            EXPECT_EQ(error_of(co_await two().send_to("x", address_of(one()))), canceled);
            const std::array<outgoing_datagram, 1> batch{{{.data = "x", .to = address_of(one())}}};
            const auto sent = co_await two().send_batch(batch);
            EXPECT_EQ(error_of(sent), canceled);
            EXPECT_EQ(sent.error().transferred, 0U);
        });
        child.request_stop();
        co_await child;
        EXPECT_EQ((co_await two().receive_from(buffer_))->size, 4U);
        EXPECT_EQ(error_of(co_await with_timeout(one().receive_from(buffer_), 0s)),
                  errc::deadline_exceeded);
    });
}

TEST_P(udp_socket_test, close_ends_a_receive_and_frees_the_port) {
    run([&]() -> task<> {
        const endpoint at = address_of(two());
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await two().receive_from(buffer_);
        });
        co_await turns(3);
        two().close();
        EXPECT_EQ(two().native_handle(), -1);
        EXPECT_EQ(error_of(co_await waiting), canceled);
        EXPECT_TRUE(co_await two().closed());
        EXPECT_TRUE(udp_socket::bind(at));
        EXPECT_EQ(error_of(co_await two().receive_from(buffer_)), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(co_await two().send("x")), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(two().take_error()), std::errc::bad_file_descriptor);
    });
}

TEST_P(udp_socket_test, close_does_not_end_a_duplicate_of_the_socket) {
    run([&]() -> task<> {
        const int copy = ::dup(two().native_handle());
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await two().receive_from(buffer_);
        });
        co_await turns(3);
        two().close();
        EXPECT_EQ(error_of(co_await waiting), canceled);
        auto other = or_throw(udp_socket::adopt(unique_fd{copy}));
        EXPECT_TRUE(co_await one().send_to("still", address_of(other)));
        EXPECT_EQ((co_await other.receive_from(buffer_))->size, 5U);
    });
}

TEST_P(udp_socket_test, a_socket_may_be_moved_and_destroyed_with_a_receive_in_flight) {
    run([&]() -> task<> {
        const endpoint at = address_of(two());
        auto waiting = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await two().receive_from(buffer_);
        });
        co_await turns(3);
        std::optional<udp_socket> moved{std::move(two())};
        EXPECT_TRUE(co_await one().send_to("found", at));
        EXPECT_EQ((co_await waiting)->size, 5U);

        auto last = spawn([&]() -> task<result<udp_datagram>> {
            co_return co_await moved->receive_from(buffer_);
        });
        co_await turns(3);
        moved.reset();
        EXPECT_EQ(error_of(co_await last), canceled);
    });
}

TEST_P(udp_socket_test, the_end_of_the_loop_ends_a_receive) {
    std::error_code ended;
    auto body = [&]() -> task<> { ended = error_of(co_await two().receive_from(buffer_)); };
    loop().spawn(body()).detach();
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();
    destroy_loop();
    EXPECT_EQ(ended, canceled);
    EXPECT_EQ(two().native_handle(), -1);
}

TEST_P(udp_socket_test, a_second_receive_is_a_contract_violation) {
    const auto twice = [&] {
        run([&]() -> task<> {
            std::array<char, 4> other;
            co_await when_all(two().receive_from(buffer_), two().receive_from(other));
        });
    };
    EXPECT_DEATH(twice(), "a second read");
}

TEST_P(udp_socket_test, empty_buffers_and_segments_of_size_zero_are_contract_violations) {
    std::array<incoming_datagram, 1> nowhere{};
    EXPECT_DEATH((void)one().receive_from(mutable_buffer{}), "contract violation");
    EXPECT_DEATH((void)one().receive_batch(std::span<incoming_datagram>{}), "contract violation");
    EXPECT_DEATH((void)one().send_segmented("x", 0, endpoint::loopback(9)), "contract violation");
    EXPECT_DEATH(run([&]() -> task<> {
                     EXPECT_TRUE(co_await one().send_to("x", address_of(two())));
                     (void)co_await two().receive_batch(nowhere);
                 }),
                 "contract violation");
}

TEST_P(udp_socket_test, a_released_socket_keeps_the_datagrams_that_have_arrived) {
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(two().receive_from(buffer_), 0s)),
                  errc::deadline_exceeded);
        EXPECT_TRUE(co_await one().send_to("waits", address_of(two())));
        auto plain = or_throw(co_await std::move(two()).release());
        EXPECT_EQ(plain.receive_from(buffer_)->size, 5U);
        EXPECT_TRUE(co_await one().send_to("more", or_throw(plain.local_endpoint())));
        udp_socket again{std::move(plain)};
        EXPECT_EQ((co_await again.receive_from(buffer_))->size, 4U);
    });
}

TEST_P(udp_socket_test, sends_and_receives_run_concurrently) {
    EXPECT_TRUE(one().set_receive_buffer(1 << 20));
    EXPECT_TRUE(two().set_receive_buffer(1 << 20));
    run([&]() -> task<> {
        constexpr int rounds = 300;
        auto echo = spawn([&]() -> task<> {
            std::array<char, 64> into;
            for (int round = 0; round < rounds; ++round) {
                const auto got = co_await two().receive_from(into);
                if (!got) co_return;
                EXPECT_TRUE(co_await two().send_to(std::span{into}.first(got->size), got->from));
            }
        });
        auto reader = spawn([&]() -> task<> {
            std::array<char, 64> into;
            for (int round = 0; round < rounds; ++round)
                EXPECT_EQ((co_await one().receive_from(into))->size, 32U);
        });
        for (int round = 0; round < rounds; ++round) {
            EXPECT_TRUE(co_await one().send_to(noise(32), address_of(two())));
            if (round % 10 == 0) co_await yield();
        }
        co_await echo;
        co_await reader;
    });
}

// --- options of a datagram

TEST_P(udp_socket_test, a_reply_can_come_from_the_address_that_received_the_request) {
    run([&]() -> task<> {
        auto server = or_throw(udp_socket::bind(endpoint::any(0)));
        EXPECT_TRUE(server.set_receive_packet_info(true));
        const auto alias = or_throw(ip_address::parse("127.0.0.2"));
        EXPECT_TRUE(co_await one().send_to("?", {alias, address_of(server).port()}));
        const auto asked = co_await server.receive_from(buffer_);
        EXPECT_TRUE(asked);
        EXPECT_EQ(asked->to, alias);
        EXPECT_EQ(asked->interface, ::if_nametoindex("lo"));

        EXPECT_TRUE(co_await server.send_to("!", asked->from, {.from = asked->to}));
        EXPECT_EQ((co_await one().receive_from(buffer_))->from.address(), alias);
        const std::array<outgoing_datagram, 2> batch{
            {{.data = "1", .to = asked->from, .options = {.from = alias}},
             {.data = "2", .to = asked->from}}};
        EXPECT_EQ(co_await server.send_batch(batch), 2U);
        EXPECT_EQ((co_await one().receive_from(buffer_))->from.address(), alias);
        EXPECT_EQ((co_await one().receive_from(buffer_))->from.address(),
                  ip_address::loopback_v4());
        const auto elsewhere = or_throw(ip_address::parse("198.51.100.1")); // RFC 5737
        EXPECT_FALSE(co_await server.send_to("x", asked->from, {.from = elsewhere}));
    });
}

TEST_P(udp_socket_test, packet_info_covers_ipv6_and_ipv4_on_an_ipv6_socket) {
    run([&]() -> task<> {
        auto server = or_throw(udp_socket::bind({ip_address::any_v6(), 0}));
        EXPECT_TRUE(server.set_receive_packet_info(true));
        EXPECT_TRUE(server.set_receive_ecn(true));
        const auto port = address_of(server).port();
        auto six = or_throw(udp_socket::bind({ip_address::loopback_v6(), 0}));

        EXPECT_TRUE(
            co_await six.send_to("6", {ip_address::loopback_v6(), port}, {.ecn = ecn::ect_1}));
        auto got = co_await server.receive_from(buffer_);
        EXPECT_EQ(got->to, ip_address::loopback_v6());
        EXPECT_EQ(got->ecn, ecn::ect_1);
        EXPECT_EQ(got->interface, ::if_nametoindex("lo"));
        EXPECT_TRUE(co_await server.send_to("6", got->from,
                                            {.from = got->to, .interface = got->interface}));
        EXPECT_EQ((co_await six.receive_from(buffer_))->size, 1U);

        EXPECT_TRUE(co_await one().send_to("4", endpoint::loopback(port), {.ecn = ecn::ect_0}));
        got = co_await server.receive_from(buffer_);
        EXPECT_EQ(got->to->unmapped(), ip_address::loopback_v4());
        EXPECT_EQ(got->ecn, ecn::ect_0);
        EXPECT_TRUE(co_await server.send_to("4", got->from,
                                            {.from = got->to, .interface = got->interface}));
        EXPECT_EQ((co_await one().receive_from(buffer_))->size, 1U);
        EXPECT_TRUE(co_await server.send_to("4", got->from, {.interface = got->interface}));
        EXPECT_EQ((co_await one().receive_from(buffer_))->size, 1U);
    });
}

TEST_P(udp_socket_test, ecn_marks_are_sent_and_received) {
    EXPECT_TRUE(two().set_receive_ecn(true));
    run([&]() -> task<> {
        using enum ecn;
        for (const ecn mark : {ect_0, ect_1, congestion_experienced, not_capable}) {
            EXPECT_TRUE(co_await one().send_to("x", address_of(two()), {.ecn = mark}));
            EXPECT_EQ((co_await two().receive_from(buffer_))->ecn, mark);
        }
        EXPECT_TRUE(one().set_ecn(ect_1));
        EXPECT_TRUE(co_await one().send_to("x", address_of(two())));
        EXPECT_EQ((co_await two().receive_from(buffer_))->ecn, ect_1);
        EXPECT_TRUE(co_await one().send_segmented("1122", 2, address_of(two()), {.ecn = ect_0}));
        EXPECT_EQ((co_await two().receive_from(buffer_))->ecn, ect_0);
        EXPECT_EQ((co_await two().receive_from(buffer_))->ecn, ect_0);
    });
}

/// An interface with a route for `group`; 0 if there is none.
unsigned interface_for(const ip_address& group) {
    if (group.is_v4()) return ::if_nametoindex("lo");
    unsigned found = 0;
    struct if_nameindex* const all = ::if_nameindex();
    for (auto* each = all; each != nullptr && each->if_index != 0; ++each) {
        auto probe = or_throw(nonblocking::udp_socket::open_v6());
        EXPECT_TRUE(probe.set_multicast_interface(each->if_index));
        if (probe.connect_to({group, 9})) found = each->if_index;
    }
    ::if_freenameindex(all);
    return found;
}

TEST_P(udp_socket_test, a_socket_receives_from_a_group_until_it_leaves) {
    // A group of this process's own: a socket receives from any group that some process on the
    // machine has joined, if the port matches (IP_MULTICAST_ALL in ip(7)), and another process may
    // share the port.
    const auto own = static_cast<unsigned>(::getpid()) & 0xffffU;
    const std::string v4 =
        "239.255." + std::to_string(own >> 8U) + '.' + std::to_string(own & 255U);
    const std::string v6 = "ff12::5e7:" + std::to_string(own % 10000);
    for (const std::string& name : {v4, v6}) {
        const auto group = or_throw(ip_address::parse(name));
        const unsigned interface = interface_for(group);
        if (interface == 0) GTEST_SKIP() << "no interface here has a route for " << name;
        const auto any = group.is_v4() ? ip_address::any_v4() : ip_address::any_v6();
        run([&]() -> task<> {
            auto member = or_throw(udp_socket::bind({any, 0}, {.reuse_address = true}));
            auto speaker = or_throw(udp_socket::bind({any, 0}));
            EXPECT_TRUE(member.join_group(group, interface));
            EXPECT_TRUE(member.set_receive_packet_info(true));
            EXPECT_TRUE(speaker.set_multicast_interface(interface));
            EXPECT_TRUE(speaker.set_multicast_hops(0)); // stays on this machine
            EXPECT_TRUE(speaker.set_multicast_loopback(true));
            const endpoint everybody{group, address_of(member).port()};
            EXPECT_EQ(co_await speaker.send_to("all", everybody), 3U);
            const auto heard = co_await with_timeout(member.receive_from(buffer_), 3s);
            EXPECT_TRUE(heard) << name;
            if (heard) {
                EXPECT_EQ(heard->size, 3U);
                EXPECT_EQ(heard->to, group);
            }

            EXPECT_TRUE(member.leave_group(group, interface));
            EXPECT_EQ(error_of(member.leave_group(group, interface)),
                      std::errc::address_not_available);
            EXPECT_EQ(co_await speaker.send_to("nobody", everybody), 6U);
            EXPECT_EQ(error_of(co_await with_timeout(member.receive_from(buffer_), 0s)),
                      errc::deadline_exceeded);
        });
    }
}

TEST_P(udp_socket_test, many_inline_receives_let_others_run) {
    EXPECT_TRUE(two().set_receive_buffer(1 << 20));
    run([&]() -> task<> {
        for (int at = 0; at < 300; ++at)
            EXPECT_TRUE(co_await one().send_to("x", address_of(two())));
        int others = 0;
        bool over = false;
        auto other = spawn([&]() -> task<> {
            while (!over) {
                ++others;
                co_await yield();
            }
        });
        for (int at = 0; at < 300; ++at)
            EXPECT_TRUE(co_await two().receive_from(buffer_));
        over = true;
        co_await other;
        EXPECT_GE(others, 3);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, udp_socket_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
