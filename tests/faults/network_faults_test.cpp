// Faults in every call, completion and allocation of connecting, resolving names and sending
// datagrams.

#include "net/name_resolver.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"
#include "support/pipes.hpp"
#include "support/scripted_resolver.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/net/detail/local_byte_stream.hpp>

#include <array>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::converse;
using testing::echo_by_read_some;
using testing::fault_scenario;
using testing::make_connection;
using testing::make_pipe;
using testing::read_all;
using testing::serve_one;
using testing::told;

class network_faults_test : public testing::fail_everywhere_test {};

constexpr std::string_view words = "one two three";

/// Three clients, served in the order of their arrival.
class accepting : public fault_scenario {
    static task<result<>> serve(tcp_listener& listener) {
        for (int left = 3; left > 0; --left) {
            auto peer = co_await listener.accept();
            if (!peer) co_return fail(peer);
            if (auto said = co_await async_write_all(*peer, "hello "); !said) co_return fail(said);
        }
        co_return result<>{};
    }
    task<result<>> visit(endpoint at) {
        for (int left = 3; left > 0; --left) {
            auto stream = co_await async_connect(at);
            if (!stream) co_return fail(stream);
            if (auto heard = co_await read_all(*stream, got_); !heard) co_return heard;
        }
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        co_await or_return(co_await gather(serve(listener), visit(at)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(network_faults_test, accept_loop) {
    fail_everywhere<accepting>();
}

class serving_a_group : public fault_scenario {
    static task<result<>> visit(endpoint at, std::string& got) {
        auto stream = co_await async_connect(at);
        if (!stream) co_return fail(stream);
        co_return co_await converse(*std::move(stream), words, got);
    }
    static task<result<>> serve(tcp_listener& listener) {
        auto body = [&](task_group& peers) -> task<result<>> {
            for (int left = 3; left > 0; --left) {
                auto peer = co_await listener.accept();
                if (!peer) co_return fail(peer);
                peers.spawn(echo_by_read_some(*std::move(peer)));
            }
            co_return result<>{};
        };
        co_return co_await with_group(body);
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        co_await or_return(co_await gather(serve(listener), visit(at, got_[0]), visit(at, got_[1]),
                                           visit(at, got_[2])));
        co_return got_[0] + got_[1] + got_[2];
    }
    std::array<std::string, 3> got_;
};
TEST_P(network_faults_test, group_of_clients) {
    fail_everywhere<serving_a_group>();
}

class being_refused : public fault_scenario {
    /// The address of a socket that does not listen, and keeps others from listening there.
    static endpoint taken_address(const unique_fd& socket) {
        sockaddr_in at{.sin_family = AF_INET};
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), size);
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size);
        return endpoint::loopback(ntohs(at.sin_port));
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        listener.close();
        co_await listener.closed();
        const unique_fd taken{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        const auto stream = co_await async_connect(taken_address(taken));
        if (!stream && stream.error() != std::errc::connection_refused) co_return fail(stream);
        co_return stream ? "connected" : "refused";
    }
};
TEST_P(network_faults_test, refused_connect) {
    fail_everywhere<being_refused>();
}

class setting_options : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        tcp_stream& stream = ends.client;
        co_await or_return(stream.set_no_delay(true));
        co_await or_return(stream.set_user_timeout(1s));
        co_await or_return(stream.set_linger(0s));
        co_return co_await or_return(stream.remote_endpoint()) ==
                co_await or_return(ends.server.local_endpoint())
            ? "right"
            : "wrong";
    }
};
TEST_P(network_faults_test, options_and_addresses) {
    fail_everywhere<setting_options>();
}

/// Both families answer; the first address refuses.
class connecting_by_name : public fault_scenario {
    task<result<>> visit(std::uint16_t port) {
        auto stream = co_await async_connect("host", port);
        if (!stream) co_return fail(stream);
        co_return co_await converse(*std::move(stream), words, got_);
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        co_await or_return(co_await gather(serve_one(listener), visit(at.port())));
        co_return got_;
    }

    struct resolver_with_answers : testing::scripted_resolver {
        resolver_with_answers() {
            answer("host", address_family::v6, {"127.0.0.2"});
            answer("host", address_family::v4, {"127.0.0.1"});
        }
    };
    resolver_with_answers resolver_;
    std::string got_;
};
TEST_P(network_faults_test, connect_by_name) {
    fail_everywhere<connecting_by_name>();
}

/// Lookups with getaddrinfo(3) that need no server.
class resolving : public fault_scenario {
    task<result<std::string>> play() override {
        static_cast<void>(resolver_category()); // allocated once and kept by the process
        const resolve_options v4{.family = address_family::v4};
        const auto found = co_await or_return(co_await async_resolve("localhost", "80", v4));
        co_return found.front().to_string();
    }
};
TEST_P(network_faults_test, resolve) {
    fail_everywhere<resolving>();
}

class talking_over_a_path : public fault_scenario {
protected:
    std::string got_;

private:
    virtual task<result<>> visit(local_endpoint at) {
        auto stream = co_await async_connect(at);
        if (!stream) co_return fail(stream);
        co_return co_await converse(*std::move(stream), words, got_);
    }
    task<result<std::string>> play() override {
        const auto at = co_await or_return(local_endpoint::parse(path_));
        auto listener = co_await or_return(local_listener::bind(at));
        co_await or_return(co_await gather(serve_one(listener), visit(at)));
        co_return got_;
    }
    testing::temporary_directory folder_;
    std::string path_ = folder_ / "socket";
};
TEST_P(network_faults_test, local_stream) {
    fail_everywhere<talking_over_a_path>();
}

class talking_without_descriptors final : public talking_over_a_path {
    task<result<>> visit(local_endpoint at) override {
        auto stream = co_await detail::connect_for_bytes(at);
        if (!stream) co_return fail(stream);
        co_return co_await converse(*std::move(stream), words, got_);
    }
};
TEST_P(network_faults_test, local_byte_stream) {
    fail_everywhere<talking_without_descriptors>();
}

class passing_descriptors : public fault_scenario {
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        const auto [out, in] = make_pipe();
        const std::array<int, 1> sent{in.get()};
        co_await or_return(co_await ours.send_descriptors("x", sent));
        std::array<std::byte, 8> buffer{};
        const auto came = co_await or_return(co_await theirs.receive_descriptors(buffer, 4));
        co_return came.descriptors.size() == 1 && came.size == 1 ? "one" : "another number";
    }
};
TEST_P(network_faults_test, descriptor_passing) {
    fail_everywhere<passing_descriptors>();
}

class sending_datagrams : public fault_scenario {
    task<result<std::string>> play() override {
        auto server = co_await or_return(udp_socket::bind(endpoint::loopback(0)));
        auto client = co_await or_return(udp_socket::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(server.local_endpoint());
        std::array<char, 16> buffer{};
        const auto bytes = std::as_writable_bytes(std::span{buffer});
        co_await or_return(co_await client.send_to("ask", at));
        const auto asked = co_await or_return(co_await server.receive_from(bytes));
        co_await or_return(co_await server.send_to(bytes.first(asked.size), asked.from));
        const auto answer = co_await or_return(co_await client.receive_from(bytes));
        co_return std::string{buffer.data(), answer.size};
    }
};
TEST_P(network_faults_test, udp_request_and_reply) {
    fail_everywhere<sending_datagrams>();
}

class sending_batches : public fault_scenario {
    task<result<>> receive(udp_socket& socket) {
        std::array<std::array<std::byte, 16>, 4> memory{};
        while (got_.size() < 4) {
            std::array<incoming_datagram, 4> into{};
            for (std::size_t at = 0; at < into.size(); ++at)
                into[at].into = memory[at];
            const auto count = co_await socket.receive_batch(into);
            if (!count) co_return fail(count);
            for (std::size_t at = 0; at < *count; ++at)
                got_ += static_cast<char>(memory[at][0]);
        }
        co_return result<>{};
    }
    static task<result<>> send(udp_socket& socket) {
        const std::array<outgoing_datagram, 4> batch{
            outgoing_datagram{.data = "a"}, outgoing_datagram{.data = "b"},
            outgoing_datagram{.data = "c"}, outgoing_datagram{.data = "d"}};
        std::span<const outgoing_datagram> rest{batch};
        while (!rest.empty()) {
            const auto count = co_await socket.send_batch(rest);
            if (!count) co_return fail(count);
            rest = rest.subspan(*count);
        }
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto receiver = co_await or_return(udp_socket::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(receiver.local_endpoint());
        auto sender = co_await or_return(udp_socket::connect(at));
        co_await or_return(co_await gather(receive(receiver), send(sender)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(network_faults_test, udp_batches) {
    fail_everywhere<sending_batches>();
}

class sending_local_datagrams : public fault_scenario {
    task<result<std::string>> play() override {
        auto receiver = co_await or_return(local_datagram::bind(local_endpoint{}));
        const auto at = co_await or_return(receiver.local_endpoint());
        auto sender = co_await or_return(local_datagram::connect(at));
        std::array<char, 16> buffer{};
        const auto bytes = std::as_writable_bytes(std::span{buffer});
        co_await or_return(co_await sender.send("note"));
        const auto note = co_await or_return(co_await receiver.receive_from(bytes));
        co_return std::string{buffer.data(), note.size};
    }
};
TEST_P(network_faults_test, local_datagrams) {
    fail_everywhere<sending_local_datagrams>();
}

/// The socket file of a dead server exists already.
class replacing_a_socket : public fault_scenario {
    task<result<std::string>> play() override {
        const auto at = co_await or_return(local_endpoint::parse(path_));
        {
            auto dead = co_await or_return(local_listener::bind(at));
            dead.close();
            co_await dead.closed();
        }
        auto listener = co_await or_return(local_listener::bind(at, {.unlink_existing = true}));
        co_await or_return(listener.unlink_path());
        co_return "replaced";
    }
    testing::temporary_directory folder_;
    std::string path_ = folder_ / "socket";
};
TEST_P(network_faults_test, existing_socket_file) {
    fail_everywhere<replacing_a_socket>();
}

/// Calls that block: one thread can be both sides, because the kernel buffers small amounts.
class blocking_sockets : public fault_scenario {
    static result<std::string> talk() {
        auto listener = blocking::tcp_listener::bind(endpoint::loopback(0));
        if (!listener) return fail(listener);
        const auto at = listener->local_endpoint();
        if (!at) return fail(at);
        auto client = blocking::tcp_stream::connect(*at, 5s);
        if (!client) return fail(client);
        // A direct call: an accept that has lost its only connection would wait forever.
        const int taken = ::accept4(listener->native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
        if (taken < 0) return fail(std::errc::io_error);
        auto server = blocking::tcp_stream::adopt(unique_fd{taken});
        if (!server) return fail(server);
        if (auto set = server->set_no_delay(true); !set) return fail(set);
        if (auto sent = client->write_all("words"); !sent) return fail(sent);
        std::string got(5, '\0');
        if (auto came = server->read_exact(got); !came) return fail(came);
        if (auto told = client->shutdown_write(); !told) return fail(told);
        const auto end = server->read_some(got);
        if (!end && end.error() != errc::end_of_stream) return fail(end);
        return got;
    }
    task<result<std::string>> play() override { co_return talk(); }
};
TEST_P(network_faults_test, blocking_sockets) {
    fail_everywhere<blocking_sockets>();
}

class naming_an_interface : public fault_scenario {
    task<result<std::string>> play() override {
        const auto found = co_await or_return(co_await async_resolve("fe80::1%lo", 80));
        co_return told(found.size());
    }
};
TEST_P(network_faults_test, interface_by_name) {
    fail_everywhere<naming_an_interface>();
}

/// Memory runs out for the answer, on a thread other than the loop's.
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
TEST_P(network_faults_test, lookup_without_memory) {
    fail_everywhere<resolving_without_memory>();
}

/// getaddrinfo(3) succeeds without an address of a known family.
class empty_answers final : public detail::sys::interceptor {
    long on_call(detail::sys::pending_call& made) noexcept override {
        return made.which() == detail::sys::call::getaddrinfo ? 0 : made.make();
    }
    detail::sys::intercepting installed_{*this};
};
TEST_P(network_faults_test, a_lookup_without_addresses_is_reported) {
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

INSTANTIATE_TEST_SUITE_P(backends, network_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
