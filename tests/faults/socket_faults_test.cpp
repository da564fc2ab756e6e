// Faults in every call of sockets apart from connections and bytes: options, names, the ways to
// make a socket and to pass it on.

#include "net/name_resolver.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::converse;
using testing::fault_scenario;
using testing::make_connection;
using testing::serve_one;
using testing::told;

class socket_faults_test : public testing::fail_everywhere_test {};

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
            .no_delay = true, .from = testing::own_endpoint(), .timeout = 1h, .report = &report_};
        auto stream = co_await async_connect(at, options);
        if (!stream) co_return fail(stream);
        co_return co_await converse(*std::move(stream), "one two", got_);
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(testing::own_endpoint()));
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

/// The ways to make a socket of the other layers, and to change a socket's layer.
class changing_layers : public fault_scenario {
    static result<std::string> streams() {
        auto listening = nonblocking::tcp_listener::bind(testing::own_endpoint());
        if (!listening) return fail(listening);
        const auto at = listening->local_endpoint();
        if (!at) return fail(at);
        auto client = nonblocking::tcp_stream::connect(*at);
        if (!client) return fail(client);
        for (;;) { // the kernel of this machine answers, so the loop is short
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
        auto server = blocking::udp_socket::bind(testing::own_endpoint());
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
        // A direct call: an accept that has lost its only connection would wait forever.
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

/// An error that was received ahead stays with the socket, and is reported once.
class bringing_an_error_along : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(ends.client, "rest"));
        auto parts = co_await or_return(co_await std::move(ends.server).release());
        detail::socket_access::expect_read_error(parts.socket, ECONNRESET);
        tcp_stream again{std::move(parts.socket)};
        std::array<std::byte, 4> bytes{};
        const std::size_t got = co_await or_return(co_await async_read_exact(again, bytes));
        ends.client.close();
        const auto end = co_await again.read_some(bytes);
        if (end || end.error() != std::errc::connection_reset)
            co_return testing::failed_otherwise(end);
        co_return told(got);
    }
};
TEST_P(socket_faults_test, error_of_another_loop) {
    fail_everywhere<bringing_an_error_along>();
}

INSTANTIATE_TEST_SUITE_P(backends, socket_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
