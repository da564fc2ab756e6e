// Every call of what sockets can be asked for beside connections and bytes, failing: options,
// names, the ways to make one, datagrams with more than bytes, signals.

#include "runtime/name_resolver.hpp"
#include "support/descriptor_limit.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::inline v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::converse;
using testing::fault_scenario;
using testing::make_connection;
using testing::serve_one;

class socket_faults_test : public testing::fail_everywhere_test {};

/// What was asked, as the outcome of a play.
template <class... Answers>
std::string told(const Answers&... answers) {
    std::string text;
    ((text += std::to_string(answers) + ' '), ...);
    return text;
}

struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

class setting_options_of_a_stream : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        tcp_stream& stream = ends.client;
        const keep_alive_options timing{.idle = 5s, .interval = 2s, .count = 3};
        co_await or_return(stream.set_keep_alive(timing));
        const auto kept = co_await or_return(stream.keep_alive_timing());
        const bool keeps = co_await or_return(stream.keep_alive());
        co_await or_return(stream.set_user_timeout(3s));
        const auto limit = co_await or_return(stream.user_timeout());
        co_await or_return(stream.set_linger(0s));
        const auto linger = co_await or_return(stream.linger());
        co_await or_return(stream.set_no_delay(true));
        const bool no_delay = co_await or_return(stream.no_delay());
        co_await or_return(stream.set_receive_buffer(10'000));
        const auto receives = co_await or_return(stream.receive_buffer());
        co_await or_return(stream.set_send_buffer(10'000));
        const auto sends = co_await or_return(stream.send_buffer());
        co_await or_return(stream.set_reuse_address(true));
        const bool reuses = co_await or_return(stream.reuse_address());
        co_return told(kept.idle.count(), kept.interval.count(), kept.count, keeps, limit.count(),
                       linger.has_value(), no_delay, receives, sends, reuses);
    }
};
TEST_P(socket_faults_test, options_of_a_stream) {
    fail_everywhere<setting_options_of_a_stream>();
}

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
TEST_P(socket_faults_test, options_of_datagram_sockets) {
    fail_everywhere<setting_options_of_datagrams>();
}

class listening_with_options : public fault_scenario {
    task<result<std::string>> play() override {
        const auto any = co_await or_return(endpoint::parse("[::1]:0"));
        auto listener = co_await or_return(tcp_listener::bind(
            any,
            {.reuse_port = true, .v6_only = true, .receive_buffer = 8192, .send_buffer = 8192}));
        const auto at = co_await or_return(listener.local_endpoint());
        auto beside =
            co_await or_return(tcp_listener::bind(at, {.reuse_port = true, .v6_only = true}));
        auto socket = co_await or_return(
            udp_socket::bind(any, {.reuse_port = true, .v6_only = true, .reuse_address = true}));
        co_return told(at == co_await or_return(beside.local_endpoint()));
    }
};
TEST_P(socket_faults_test, options_of_listeners) {
    fail_everywhere<listening_with_options>();
}

class connecting_with_options : public fault_scenario {
    task<result<>> visit(endpoint at) {
        const connect_options options{
            .no_delay = true, .from = endpoint::loopback(0), .timeout = 1h, .report = &report_};
        auto stream = co_await async_connect(at, options);
        if (!stream) co_return fail(stream);
        co_return co_await converse(*std::move(stream), "one two", got_);
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        co_await or_return(co_await gather(serve_one(listener), visit(at)));
        co_return got_ + told(report_.attempts.size());
    }
    connect_report report_;
    std::string got_;
};
TEST_P(socket_faults_test, connect_with_options) {
    fail_everywhere<connecting_with_options>();
}

/// The ways to make a socket of the other layers, and from one to the next.
class changing_layers : public fault_scenario {
    static result<std::string> streams() {
        auto listening = nonblocking::tcp_listener::bind(endpoint::loopback(0));
        if (!listening) return fail(listening);
        const auto at = listening->local_endpoint();
        if (!at) return fail(at);
        auto client = nonblocking::tcp_stream::connect(*at);
        if (!client) return fail(client);
        for (;;) { // the kernel answers itself, so that this is not for long
            const auto connected = client->finish_connect();
            if (connected) break;
            if (connected.error() != std::errc::operation_would_block) return fail(connected);
        }
        auto server = listening->accept();
        if (!server) return fail(server);
        auto waiting = blocking::tcp_stream::from(*std::move(server));
        if (!waiting) return fail(waiting);
        const std::array<const_buffer, 2> parts{const_buffer{"lay"}, const_buffer{"ers"}};
        if (auto sent = waiting->write_all(parts); !sent) return fail(sent);
        std::string got(6, '\0');
        if (auto came = client->read_some(got); !came) return fail(came);
        auto back = nonblocking::tcp_stream::from(*std::move(waiting));
        if (!back) return fail(back);
        auto accepting = blocking::tcp_listener::from(*std::move(listening));
        if (!accepting) return fail(accepting);
        auto polling = nonblocking::tcp_listener::from(*std::move(accepting));
        if (!polling) return fail(polling);
        return got;
    }
    static result<std::string> datagrams() {
        auto server = blocking::udp_socket::bind(endpoint::loopback(0));
        if (!server) return fail(server);
        const auto at = server->local_endpoint();
        if (!at) return fail(at);
        auto client = blocking::udp_socket::connect(*at);
        if (!client) return fail(client);
        auto polling = nonblocking::udp_socket::from(*std::move(client));
        if (!polling) return fail(polling);
        if (auto sent = polling->send("ask"); !sent) return fail(sent);
        std::string got(3, '\0');
        auto asked = server->receive_from(got);
        if (!asked) return fail(asked);
        if (auto sent = server->send_to(got, asked->from); !sent) return fail(sent);
        if (auto came = polling->receive(got); !came) return fail(came);
        if (auto done = polling->disconnect(); !done) return fail(done);
        auto back = blocking::udp_socket::from(*std::move(polling));
        if (!back) return fail(back);
        return got;
    }
    task<result<std::string>> play() override {
        co_return co_await or_return(streams()) + co_await or_return(datagrams());
    }
};
TEST_P(socket_faults_test, one_layer_to_the_next) {
    fail_everywhere<changing_layers>();
}

class blocking_local_sockets : public fault_scenario {
    result<std::string> talk() const {
        const auto at = local_endpoint::parse(path_);
        if (!at) return fail(at);
        auto listener = blocking::local_listener::bind(*at);
        if (!listener) return fail(listener);
        auto client = blocking::local_stream::connect(*at, 200ms);
        if (!client) return fail(client);
        // By hand: an accept that has lost its only connection waits for ever.
        const int taken = ::accept4(listener->native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
        if (taken < 0) return fail(std::errc::io_error);
        auto server = blocking::local_stream::adopt(unique_fd{taken});
        if (!server) return fail(server);
        const auto peer = server->peer_credentials();
        if (!peer) return fail(peer);
        const auto name = client->remote_endpoint();
        if (!name) return fail(name);
        const auto sent = client->send_descriptors("x", listener->native_handle());
        if (!sent) return fail(sent);
        std::array<std::byte, 4> bytes{};
        const auto came = server->receive_descriptors(bytes);
        if (!came) return fail(came);
        if (auto gone = listener->unlink_path(); !gone) return fail(gone);
        return told(peer->pid == ::getpid(), *name == *at, came->descriptors.size());
    }
    static result<std::string> pairs() {
        auto streams = blocking::local_stream::pair();
        if (!streams) return fail(streams);
        auto datagrams = blocking::local_datagram::pair();
        if (!datagrams) return fail(datagrams);
        auto polling = nonblocking::local_datagram::pair();
        if (!polling) return fail(polling);
        auto awaited = simplenet::local_datagram::pair();
        if (!awaited) return fail(awaited);
        auto& [left, right] = *datagrams;
        const std::array<outgoing_message, 2> batch{outgoing_message{.data = "a"},
                                                    outgoing_message{.data = "b"}};
        if (auto sent = left.send_batch(batch); !sent) return fail(sent);
        std::string got(2, '\0');
        if (auto came = right.receive(mutable_buffer{got}.first(1)); !came) return fail(came);
        if (auto came = right.receive(mutable_buffer{got}.subspan(1)); !came) return fail(came);
        return got;
    }
    task<result<std::string>> play() override {
        co_return co_await or_return(talk()) + co_await or_return(pairs());
    }
    testing::temporary_directory folder_;
    std::string path_ = folder_ / "socket";
};
TEST_P(socket_faults_test, blocking_local_sockets) {
    fail_everywhere<blocking_local_sockets>();
}

class echoing_locally : public fault_scenario {
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(co_await gather(testing::echo_by_receive(std::move(theirs)),
                                           converse(std::move(ours), "one two three", got_)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(socket_faults_test, local_echo_by_receive) {
    fail_everywhere<echoing_locally>();
}

/// What is left of a piece is read without waiting.
class reading_a_piece_in_parts : public fault_scenario {
    static task<result<>> send(local_stream& stream) {
        for (const std::string_view part : {"and ", "the ", "last"}) {
            if (auto sent = co_await async_write_all(stream, part); !sent) co_return fail(sent);
            for (int turns = 3; turns > 0; --turns)
                co_await async_sleep(0s);
        }
        co_return result<>{};
    }
    static task<result<>> receive(local_stream& stream, std::string& got) {
        std::string rest(12, '\0');
        if (auto came = co_await async_read_exact(stream, rest); !came) co_return fail(came);
        got += rest;
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(co_await async_write_all(ours, "one two three"));
        std::string got(13, '\0');
        for (mutable_buffer rest{got}; !rest.empty();) {
            const auto part = rest.first(std::min<std::size_t>(rest.size(), 4));
            rest = rest.subspan(co_await or_return(co_await theirs.read_some(part)));
        }
        co_await or_return(co_await gather(receive(theirs, got), send(ours)));
        co_return got;
    }
};
TEST_P(socket_faults_test, local_read_in_parts) {
    fail_everywhere<reading_a_piece_in_parts>();
}

/// Two buffers for three streams.
class waiting_for_a_buffer : public fault_scenario {
    static task<result<received>> take(tcp_stream& stream) { co_return co_await stream.receive(); }
    static task<result<>> let_go(std::vector<received>& leases) {
        for (int turns = 3; turns > 0; --turns)
            co_await yield();
        leases.clear();
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        std::vector<testing::connection> ends;
        std::vector<received> leases;
        for (int each = 0; each < 3; ++each) {
            ends.push_back(co_await or_return(co_await make_connection()));
            co_await or_return(co_await async_write_all(ends.back().client, "word"));
            if (each < 2)
                leases.push_back(co_await or_return(co_await ends[each].server.receive()));
        }
        auto [last, done] =
            co_await or_return(co_await gather(take(ends[2].server), let_go(leases)));
        co_return std::string{last.text()};
    }
};
TEST_P(socket_faults_test, leases_of_two_buffers) {
    fail_everywhere<waiting_for_a_buffer>({.receive_pool = 1});
}

/// An error that was received ahead goes with the socket, and is told once.
class bringing_an_error_along : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(ends.client, "rest"));
        auto parts = co_await or_return(co_await std::move(ends.server).release());
        parts.socket.expect_read_error(ECONNRESET);
        tcp_stream again{std::move(parts.socket)};
        std::array<std::byte, 4> bytes{};
        const auto first = co_await again.read_some(bytes);
        if (first || first.error() != std::errc::connection_reset) co_return fail(first);
        co_return told(co_await or_return(co_await async_read_exact(again, bytes)));
    }
};
TEST_P(socket_faults_test, error_of_another_loop) {
    fail_everywhere<bringing_an_error_along>();
}

class sending_segments : public fault_scenario {
    task<result<std::string>> play() override {
        auto receiver = co_await or_return(udp_socket::bind(endpoint::loopback(0)));
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
TEST_P(socket_faults_test, udp_segments) {
    fail_everywhere<sending_segments>();
}

class sending_segments_at_once : public fault_scenario {
    static result<std::string> send() {
        auto receiver = nonblocking::udp_socket::bind(endpoint::loopback(0));
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
TEST_P(socket_faults_test, nonblocking_udp_segments) {
    fail_everywhere<sending_segments_at_once>();
}

/// Nobody is there, which the socket is told beside the datagrams.
class asking_for_errors : public fault_scenario {
    task<result<std::string>> play() override {
        auto gone = co_await or_return(udp_socket::bind(endpoint::loopback(0)));
        const auto nobody = co_await or_return(gone.local_endpoint());
        gone.close();
        co_await or_return(co_await gone.closed());
        auto socket = co_await or_return(udp_socket::bind(endpoint::loopback(0)));
        co_await or_return(socket.set_receive_errors(true));
        co_await or_return(co_await socket.send_to("x", nobody));
        std::array<std::byte, 8> bytes{};
        const auto came = co_await socket.receive_from(bytes);
        if (came || came.error() != std::errc::connection_refused) co_return fail(came);
        // With io_uring a wait beside an error that nobody takes is another one.
        const auto nothing = co_await with_timeout(socket.receive_from(bytes), 1ms);
        if (nothing || nothing.error() != errc::deadline_exceeded) co_return fail(nothing);
        co_await or_return(
            co_await socket.send_to("self", co_await or_return(socket.local_endpoint())));
        co_await or_return(co_await socket.receive_from(bytes));
        const auto told_of = co_await or_return(socket.take_error());
        co_return told(told_of.to == nobody, told_of.code.value());
    }
};
TEST_P(socket_faults_test, udp_errors) {
    fail_everywhere<asking_for_errors>();
}

/// More than the queue of the receiver takes, of whose room nobody tells.
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
TEST_P(socket_faults_test, full_queue) {
    fail_everywhere<filling_a_queue>();
}

/// The kernel opens no descriptor for what comes, or the caller wants none.
class refusing_descriptors : public fault_scenario {
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        const std::array<int, 1> own{ours.native_handle()};
        std::array<std::byte, 8> bytes{};
        co_await or_return(co_await ours.send_descriptors("x", own));
        std::optional<testing::descriptor_limit> none;
        {
            const testing::exempt_allocations always;
            none.emplace();
        }
        auto came = co_await theirs.receive_descriptors(bytes, 4);
        none.reset();
        if (came || came.error().transferred == 0) co_return fail(came);
        const auto full = came.error().code;
        co_await or_return(co_await ours.send_descriptors("x", own));
        came = co_await theirs.receive_descriptors(bytes, 0);
        if (came || came.error().transferred == 0) co_return fail(came);
        co_return told(full == std::errc::too_many_files_open,
                       came.error().code == errc::limit_exceeded);
    }
};
TEST_P(socket_faults_test, refused_descriptors) {
    fail_everywhere<refusing_descriptors>();
}

class catching_a_signal : public fault_scenario {
    task<result<std::string>> play() override {
        signal_set signals{SIGURG}; // which is ignored when nobody catches it
        ::pthread_kill(::pthread_self(), SIGURG);
        co_return told(co_await or_return(co_await signals.next()));
    }
};
TEST_P(socket_faults_test, signals) {
    fail_everywhere<catching_a_signal>();
}

class naming_an_interface : public fault_scenario {
    task<result<std::string>> play() override {
        const auto found = co_await or_return(co_await async_resolve("fe80::1%lo", 80));
        co_return told(found.size());
    }
};
TEST_P(socket_faults_test, interface_by_name) {
    fail_everywhere<naming_an_interface>();
}

/// There is no memory for the answer, on a thread that is not the loop's.
class resolving_without_memory : public fault_scenario {
    task<result<std::string>> play() override {
        const auto found = co_await async_resolve("host", 80);
        const bool told_so = !found && found.error() == std::errc::not_enough_memory;
        if (!found && !told_so) co_return fail(found);
        co_return "no memory";
    }
    detail::name_resolver resolver_{
        [](const detail::sys::name_question&) -> detail::sys::name_answer {
            throw std::bad_alloc{};
        },
        {}};
    detail::name_resolver::replacement replaces_{resolver_};
};
TEST_P(socket_faults_test, lookup_without_memory) {
    fail_everywhere<resolving_without_memory>();
}

/// What async_copy() does with much at once.
class passing_through_a_pipe : public fault_scenario {
    task<result<std::string>> play() override {
        auto from = co_await or_return(co_await make_connection());
        auto to = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(from.client, "through the kernel"));
        co_await or_return(from.client.shutdown_write());
        co_await or_return(co_await from.server.await_bytes_operation());
        std::size_t moved = 0;
        co_await or_return(co_await detail::move_through_pipe(from.server, to.client, moved));
        // The end; and all of it without a pipe.
        co_await or_return(co_await async_copy(from.server, to.client));
        co_await or_return(to.client.shutdown_write());
        co_await or_return(co_await testing::read_all(to.server, got_));
        co_return got_;
    }
    std::string got_;
};
TEST_P(socket_faults_test, pipe) {
    fail_everywhere<passing_through_a_pipe>();
}

/// A file, into a socket that is full.
class filling_a_socket : public fault_scenario {
    static constexpr std::size_t size = 40'000;

    task<result<>> send(local_stream stream) {
        const auto sent = co_await async_send_file(stream, ::fileno(file_.get()), 0, size);
        if (!sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
    task<result<>> receive(local_stream& stream) {
        for (int turns = 5; turns > 0; --turns)
            co_await yield();
        co_return co_await testing::read_all(stream, got_);
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(ours.set_send_buffer(4096));
        co_await or_return(co_await gather(send(std::move(ours)), receive(theirs)));
        co_return told(got_.size());
    }
    std::unique_ptr<std::FILE, closer> file_ = [] {
        std::unique_ptr<std::FILE, closer> made{std::tmpfile()};
        const std::string content(size, 'x');
        std::fwrite(content.data(), 1, content.size(), made.get());
        std::fflush(made.get());
        return made;
    }();
    std::string got_;
};
TEST_P(socket_faults_test, file_into_a_full_socket) {
    fail_everywhere<filling_a_socket>();
}

/// A wait that ends with its limit looks once more.
class waiting_with_a_limit : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        // A number beyond what there is memory for.
        const unique_fd high{::fcntl(ends.server.native_handle(), F_DUPFD_CLOEXEC, 200)};
        const std::unique_ptr<std::FILE, closer> file{std::tmpfile()};
        if (!high || !file) co_return fail(std::errc::io_error);
        co_await or_return(co_await async_wait_readable(::fileno(file.get())));
        const auto nothing = co_await with_timeout(async_wait_readable(high.get()), 1ms);
        if (nothing || nothing.error() != errc::deadline_exceeded) {
            if (!nothing) co_return fail(nothing);
            co_return "something";
        }
        co_return "nothing";
    }
};
TEST_P(socket_faults_test, wait_with_a_limit) {
    fail_everywhere<waiting_with_a_limit>();
}

/// By both writes, which wait for room.
class filling_a_socket_in_parts : public fault_scenario {
    static constexpr std::size_t size = 40'000;

    static task<result<>> send(local_stream stream) {
        const std::string text(size, 'x');
        for (const_buffer rest{text}; !rest.empty();) {
            const auto sent = co_await stream.write_some(rest);
            if (!sent) co_return fail(sent);
            rest = rest.subspan(*sent);
        }
        if (auto sent = co_await async_write_all(stream, text); !sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
    task<result<>> receive(local_stream& stream) {
        for (int turns = 5; turns > 0; --turns)
            co_await yield();
        co_return co_await testing::read_all(stream, got_);
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(ours.set_send_buffer(4096));
        co_await or_return(co_await gather(send(std::move(ours)), receive(theirs)));
        co_return told(got_.size());
    }
    std::string got_;
};
TEST_P(socket_faults_test, writes_into_a_full_socket) {
    fail_everywhere<filling_a_socket_in_parts>();
}

/// With io_uring the kernel sees an operation and its cancel at once.
class stopping_what_has_just_begun : public fault_scenario {
    task<> read(local_stream& stream) {
        std::array<std::byte, 8> bytes{};
        note(co_await stream.read_some(bytes));
    }
    task<> take(local_stream& stream) { note(co_await stream.receive()); }
    task<> write(local_stream& stream) {
        const std::string text(3'000'000, 'x');
        note(co_await async_write_all(stream, text));
    }
    static task<> do_nothing() { co_return; }
    /// Makes room for a write that waits.
    static task<> drain(local_stream& stream) {
        std::array<std::byte, 4096> bytes;
        while (::recv(stream.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
        }
        co_return;
    }
    void note(const auto& outcome) {
        if (outcome) {
            ++succeeded_;
        } else if (outcome.error() == std::errc::operation_canceled) {
            ++stopped_;
        } else {
            error_ = outcome.error();
        }
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await when_any(read(theirs), do_nothing());
        co_await when_any(take(theirs), do_nothing());
        co_await when_any(write(ours), drain(theirs));
        if (error_) co_return fail(error_);
        co_return told(succeeded_, stopped_);
    }
    int succeeded_ = 0;
    int stopped_ = 0;
    std::error_code error_;
};
TEST_P(socket_faults_test, stop_at_once) {
    fail_everywhere<stopping_what_has_just_begun>();
}

/// Asked again after it has failed, it says the same.
class asking_a_broken_writer : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        queued_writer writer{std::move(ends.client), {.low = 10, .high = 20, .limit = 100}};
        co_await or_return(writer.enqueue("some words"));
        const auto first = co_await writer.flush();
        const auto second = co_await writer.flush();
        if (first.has_value() != second.has_value()) co_return "another outcome";
        if (!first) co_return fail(first);
        co_return "flushed";
    }
};
TEST_P(socket_faults_test, broken_writer) {
    fail_everywhere<asking_a_broken_writer>();
}

/// More connections at once than are accepted ahead on purpose.
class accepting_far_ahead : public fault_scenario {
    static constexpr std::size_t count = 80;

    bool knock(const endpoint& at) {
        clients_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const linger reset{.l_onoff = 1, .l_linger = 0}; // or they would take all ports
        ::setsockopt(clients_.back().get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(at.port());
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return ::connect(clients_.back().get(), reinterpret_cast<const sockaddr*>(&to),
                         sizeof to) == 0;
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        clients_.reserve(count);
        std::size_t accepted = 0;
        for (const std::size_t wanted : {std::size_t{1}, count}) {
            while (clients_.size() < wanted) {
                if (!knock(at)) co_return fail(std::errc::io_error);
            }
            for (int turns = 3; turns > 0; --turns)
                co_await yield();
            for (; accepted < wanted; ++accepted) {
                const auto peer = co_await with_timeout(listener.accept(), 100ms);
                // One of them was dropped, and its client has been told.
                if (!peer && peer.error() == errc::deadline_exceeded)
                    co_return fail(std::errc::connection_aborted);
                if (!peer) co_return fail(peer);
            }
        }
        co_return told(accepted);
    }
    std::vector<unique_fd> clients_;
};
TEST_P(socket_faults_test, accepting_ahead) {
    fail_everywhere<accepting_far_ahead>();
}

/// More operations at once than the ring has entries, before the loop has entered the kernel.
class filling_the_ring : public fault_scenario {
    static task<result<std::size_t>> read(local_stream& stream) {
        std::array<std::byte, 8> bytes{};
        co_return co_await stream.read_some(bytes);
    }
    task<result<std::string>> play() override {
        std::vector<std::pair<local_stream, local_stream>> pairs;
        for (int left = 50; left > 0; --left) {
            pairs.push_back(co_await or_return(local_stream::pair()));
            const int fd = pairs.back().first.native_handle();
            if (::send(fd, "word", 4, MSG_NOSIGNAL) != 4) co_return fail(std::errc::io_error);
        }
        std::vector<task<result<std::size_t>>> reading;
        for (auto& [ours, theirs] : pairs)
            reading.push_back(read(theirs));
        std::size_t total = 0;
        for (const auto& count : co_await when_all(std::move(reading)))
            total += co_await or_return(count);
        co_return told(total);
    }
};
TEST_P(socket_faults_test, full_ring) {
    fail_everywhere<filling_the_ring>({.queue_depth = 8});
}

TEST_P(socket_faults_test, a_kernel_that_wants_its_completions_reaped_first_loses_none) {
    for (const unsigned at : {1U, 2U, 3U, 4U}) {
        auto loop = or_throw(event_loop::create({.backend = GetParam(), .queue_depth = 8}));
        testing::fault_plan plan;
        plan.fail(testing::call::uring_enter, at, EBUSY);
        filling_the_ring scene;
        auto body = [](fault_scenario& played) -> task<> {
            EXPECT_EQ(co_await played.play(), "200 ");
        };
        loop.spawn(body(scene));
        EXPECT_TRUE(loop.run_for(5s * testing::patience));
    }
}

/// What each task waits for, printed for a signal.
class dumping_tasks : public fault_scenario {
    task<result<std::string>> play() override {
        ::raise(SIGUSR2);
        for (int turns = 3; turns > 0; --turns)
            co_await async_sleep(0s);
        co_return "dumped";
    }
};
TEST_P(socket_faults_test, dump_of_the_tasks) {
    ::testing::internal::CaptureStderr();
    fail_everywhere<dumping_tasks>({.dump_signal = SIGUSR2});
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(printed.contains("loop: "));
    EXPECT_TRUE(printed.contains("no memory to print the tasks"));
}

/// getaddrinfo(3) succeeds, with no address that we know.
class empty_answers final : public detail::sys::interceptor {
    long on_call(detail::sys::pending_call& made) noexcept override {
        return made.which() == detail::sys::call::getaddrinfo ? 0 : made.make();
    }
    detail::sys::intercepting installed_{*this};
};
TEST_P(socket_faults_test, a_lookup_that_finds_no_address_says_so) {
    auto loop = or_throw(event_loop::create({.backend = GetParam()}));
    const empty_answers answers;
    auto body = []() -> task<> {
        const auto found = co_await async_resolve("host", 80);
        EXPECT_FALSE(found);
        EXPECT_EQ(found.error(), errc::name_not_found);
    };
    loop.spawn(body());
    EXPECT_TRUE(loop.run_for(5s * testing::patience));
}

INSTANTIATE_TEST_SUITE_P(backends, socket_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::inline v0
