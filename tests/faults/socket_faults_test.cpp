// Every call of what sockets can be asked for beside connections and bytes, failing: options,
// names, the ways to make one and to hand it on, signals.

#include "net/name_resolver.hpp"
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
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
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

/// An error that was received ahead goes with the socket, and is told once.
class bringing_an_error_along : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(ends.client, "rest"));
        auto parts = co_await or_return(co_await std::move(ends.server).release());
        detail::socket_access::expect_read_error(parts.socket, ECONNRESET);
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
        co_await or_return(co_await detail::stream_access::await_bytes_operation(from.server));
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

/// A wait that ends with its limit looks once more.
class waiting_with_a_limit : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        // A number beyond what there is memory for.
        const unique_fd high{::fcntl(ends.server.native_handle(), F_DUPFD_CLOEXEC, 200)};
        const auto file = testing::temporary_file("");
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
} // namespace simplenet::v0
