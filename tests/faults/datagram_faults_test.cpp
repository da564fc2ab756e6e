// Faults in every call of datagram sockets: options, segments, errors of the network, full queues.

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <net/if.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;
using testing::told;

class datagram_faults_test : public testing::fail_everywhere_test {};

class setting_options_of_datagrams : public fault_scenario {
    static result<std::string> set(udp_socket socket, const ip_address& group) {
        const unsigned loopback = ::if_nametoindex("lo");
        for (const result<>& done :
             {socket.set_broadcast(true), socket.join_group(group, loopback),
              socket.leave_group(group, loopback), socket.set_multicast_loopback(false),
              socket.set_multicast_hops(7), socket.set_multicast_interface(loopback),
              socket.enable_gro(), socket.set_receive_packet_info(true),
              socket.set_receive_ecn(true), socket.set_receive_errors(true),
              socket.set_ecn(ecn::ect_0)}) {
            if (!done) return fail(done);
        }
        const auto broadcast = socket.broadcast();
        if (!broadcast) return fail(broadcast);
        const auto loops = socket.multicast_loopback();
        if (!loops) return fail(loops);
        const auto hops = socket.multicast_hops();
        if (!hops) return fail(hops);
        return told(*broadcast, *loops, *hops);
    }
    task<result<std::string>> play() override {
        const auto v4 = co_await or_return(ip_address::parse("239.255.7.8"));
        const auto v6 = co_await or_return(ip_address::parse("ff01::789"));
        co_return co_await or_return(set(co_await or_return(udp_socket::open_v4()), v4)) +
            co_await or_return(set(co_await or_return(udp_socket::open_v6()), v6));
    }
};
TEST_P(datagram_faults_test, options_of_datagram_sockets) {
    fail_everywhere<setting_options_of_datagrams>();
}

class sending_segments : public fault_scenario {
    task<result<std::string>> play() override {
        auto receiver = co_await or_return(udp_socket::bind(testing::own_endpoint()));
        const auto at = co_await or_return(receiver.local_endpoint());
        co_await or_return(receiver.set_receive_packet_info(true));
        auto sender = co_await or_return(udp_socket::connect(at));
        const std::string text(2500, 'x');
        const udp_send_options marked{.from = ip_address::loopback_v4(), .ecn = ecn::ect_0};
        co_await or_return(co_await sender.send_segmented(text, 1000, marked));
        co_await or_return(co_await sender.send_segmented(text, 1000, at));
        co_await or_return(co_await sender.send("alone", marked));
        const std::array<outgoing_datagram, 3> run{outgoing_datagram{.data = "a"},
                                                   outgoing_datagram{.data = "b"},
                                                   outgoing_datagram{.data = "c"}};
        co_await or_return(co_await sender.send_batch(run));
        std::string got;
        std::array<std::byte, 1000> bytes{};
        for (int left = 10; left > 0; --left) {
            const auto came = co_await or_return(co_await receiver.receive_from(bytes));
            got += told(came.size);
        }
        co_return got;
    }
};
TEST_P(datagram_faults_test, udp_segments) {
    fail_everywhere<sending_segments>();
}

class sending_segments_at_once : public fault_scenario {
    static result<std::string> send() {
        auto receiver = nonblocking::udp_socket::bind(testing::own_endpoint());
        if (!receiver) return fail(receiver);
        const auto at = receiver->local_endpoint();
        if (!at) return fail(at);
        auto sender = nonblocking::udp_socket::connect(*at);
        if (!sender) return fail(sender);
        const std::string text(2500, 'x');
        if (auto sent = sender->send_segmented(text, 1400); !sent) return fail(sent);
        if (auto sent = sender->send_segmented("alone", 1400); !sent) return fail(sent);
        const std::array<outgoing_datagram, 3> run{outgoing_datagram{.data = "a"},
                                                   outgoing_datagram{.data = "b"},
                                                   outgoing_datagram{.data = "c"}};
        if (auto sent = sender->send_batch(run); !sent) return fail(sent);
        std::string got;
        std::array<std::byte, 1400> bytes{};
        for (int left = 6; left > 0; --left) {
            const auto came = receiver->receive_from(bytes);
            if (!came) return fail(came);
            got += told(came->size);
        }
        return got;
    }
    task<result<std::string>> play() override { co_return send(); }
};
TEST_P(datagram_faults_test, nonblocking_udp_segments) {
    fail_everywhere<sending_segments_at_once>();
}

/// The peer does not exist, which the error queue of the socket reports.
class asking_for_errors : public fault_scenario {
    task<result<std::string>> play() override {
        auto gone = co_await or_return(udp_socket::bind(testing::own_endpoint()));
        const auto nobody = co_await or_return(gone.local_endpoint());
        gone.close();
        co_await or_return(co_await gone.closed());
        auto socket = co_await or_return(udp_socket::bind(testing::own_endpoint()));
        co_await or_return(socket.set_receive_errors(true));
        co_await or_return(co_await socket.send_to("x", nobody));
        std::array<std::byte, 8> bytes{};
        const auto came = co_await socket.receive_from(bytes);
        if (came || came.error() != std::errc::connection_refused)
            co_return testing::failed_otherwise(came);
        // With io_uring, a wait takes another path while an error is unread.
        const auto nothing = co_await with_timeout(socket.receive_from(bytes), 1ms);
        if (nothing || nothing.error() != errc::deadline_exceeded)
            co_return testing::failed_otherwise(nothing);
        co_await or_return(
            co_await socket.send_to("self", co_await or_return(socket.local_endpoint())));
        co_await or_return(co_await socket.receive_from(bytes));
        const auto told_of = co_await or_return(socket.take_error());
        co_return told(told_of.to == nobody, told_of.code.value());
    }
};
TEST_P(datagram_faults_test, udp_errors) {
    fail_everywhere<asking_for_errors>();
}

/// More datagrams than the queue of the receiver holds; the kernel does not report room in it.
class filling_a_queue : public fault_scenario {
    static constexpr std::size_t count = 30;

    static task<result<>> send(local_datagram& socket, local_endpoint to) {
        for (std::size_t left = count; left > 0; --left) {
            if (auto sent = co_await socket.send_to("x", to); !sent) co_return fail(sent);
        }
        const std::vector<outgoing_message> batch(count, {.data = "y", .to = to});
        auto sent = co_await socket.send_batch(batch);
        if (!sent) co_return fail(sent);
        co_return result<>{};
    }
    task<result<>> receive(local_datagram& socket) {
        std::array<std::array<std::byte, 4>, 4> memory{};
        while (got_ < 2 * count) {
            for (int turns = 20; turns > 0; --turns)
                co_await yield();
            std::array<incoming_message, 4> into{};
            for (std::size_t at = 0; at < into.size(); ++at)
                into[at].into = memory[at];
            const auto came = co_await socket.receive_batch(into);
            if (!came) co_return fail(came);
            got_ += *came;
        }
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto receiver = co_await or_return(local_datagram::bind(local_endpoint{}));
        const auto at = co_await or_return(receiver.local_endpoint());
        auto sender = co_await or_return(local_datagram::open());
        co_await or_return(co_await gather(send(sender, at), receive(receiver)));
        auto left = co_await or_return(co_await std::move(receiver).release());
        co_return told(got_, left.is_open());
    }
    std::size_t got_ = 0;
};
TEST_P(datagram_faults_test, full_queue) {
    fail_everywhere<filling_a_queue>();
}

INSTANTIATE_TEST_SUITE_P(backends, datagram_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
