#include <simplenet/net/tcp_listener.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connected_pair;
using testing::turns;
using testing::until;

class tcp_listener_test : public testing::backend_test {
protected:
    tcp_listener listen(const listen_options& options = {}) {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0), options));
        at_ = or_throw(listener.local_endpoint());
        return listener;
    }
    /// Connects to the last listener that listen() made.
    testing::raw_peer connect() {
        auto stream = or_throw(blocking::tcp_stream::connect(at_));
        return testing::raw_peer{std::move(stream).release()};
    }
    /// A socket that is not connected yet.
    static unique_fd make_socket() {
        return unique_fd{
            testing::checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
    }
    void start_connecting(const unique_fd& socket) const {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(at_.port());
        const int outcome =
            ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
        EXPECT_TRUE(outcome == 0 || errno == EINPROGRESS);
    }

private:
    endpoint at_;
};

TEST_P(tcp_listener_test, accept_takes_a_waiting_connection) {
    auto listener = listen();
    auto client = connect();
    run([&]() -> task<> {
        auto stream = co_await listener.accept();
        EXPECT_TRUE(stream);
        if (stream) {
            EXPECT_TRUE(co_await stream->write_some("welcome"));
        }
    });
    EXPECT_EQ(client.receive(7), "welcome");
}

TEST_P(tcp_listener_test, accept_waits_for_a_connection) {
    auto listener = listen();
    run([&]() -> task<> {
        std::optional<testing::raw_peer> client;
        auto later = spawn([&]() -> task<> {
            co_await turns(5);
            client.emplace(connect());
        });
        EXPECT_TRUE(co_await listener.accept());
        co_await later;
    });
}

TEST_P(tcp_listener_test, accepted_descriptors_are_nonblocking_and_close_on_exec) {
    auto listener = listen();
    auto client = connect();
    run([&]() -> task<> {
        auto stream = co_await listener.accept();
        EXPECT_TRUE(stream);
        if (!stream) co_return;
        EXPECT_TRUE(testing::is_nonblocking(stream->native_handle()));
        EXPECT_TRUE(testing::is_close_on_exec(stream->native_handle()));
    });
}

TEST_P(tcp_listener_test, connections_are_accepted_in_the_order_of_their_arrival) {
    auto listener = listen();
    std::vector<testing::raw_peer> clients;
    for (int each = 0; each < 100; ++each) {
        clients.push_back(connect());
        clients.back().send(std::to_string(each) + "\n");
    }
    run([&]() -> task<> {
        for (int each = 0; each < 100; ++each) {
            auto stream = co_await listener.accept();
            EXPECT_TRUE(stream);
            if (!stream) co_return;
            std::string text(std::to_string(each).size() + 1, '\0');
            EXPECT_TRUE(co_await async_read_exact(*stream, text));
            EXPECT_EQ(text, std::to_string(each) + "\n");
        }
    });
}

TEST_P(tcp_listener_test, binding_an_endpoint_in_use_is_reported) {
    auto listener = listen();
    auto second = tcp_listener::bind(or_throw(listener.local_endpoint()));
    EXPECT_EQ(error_of(second), std::errc::address_in_use);
}

TEST_P(tcp_listener_test, binding_an_address_of_another_machine_is_reported) {
    auto listener = tcp_listener::bind(or_throw(endpoint::parse("192.0.2.1:0")));
    EXPECT_EQ(error_of(listener), std::errc::address_not_available);
}

TEST_P(tcp_listener_test, a_stopped_accept_loses_no_connection) {
    auto listener = listen();
    std::vector<testing::raw_peer> clients;
    std::size_t accepted = 0;
    run([&]() -> task<> {
        for (int round = 0; round < 100; ++round) {
            auto accepting = spawn([&]() -> task<> {
                while (co_await listener.accept())
                    ++accepted;
            });
            co_await turns(round % 3);
            clients.push_back(connect());
            co_await turns(round % 4);
            accepting.request_stop();
            clients.push_back(connect());
            co_await accepting;
        }
        while (accepted < clients.size()) {
            EXPECT_TRUE(co_await listener.accept());
            ++accepted;
        }
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
    });
    EXPECT_EQ(accepted, 200U);
}

TEST_P(tcp_listener_test, a_connection_reset_before_it_is_accepted_does_no_harm) {
    auto listener = listen();
    for (int each = 0; each < 5; ++each)
        connect().reset();
    auto client = connect();
    client.send("!");
    run([&]() -> task<> {
        for (;;) {
            auto stream = co_await listener.accept();
            EXPECT_TRUE(stream) << error_of(stream).message();
            if (!stream) break;
            std::array<std::byte, 8> buffer;
            auto count = co_await stream->read_some(buffer);
            if (count) break;
            EXPECT_EQ(error_of(count), std::errc::connection_reset);
        }
    });
}

TEST_P(tcp_listener_test, closing_also_closes_connections_accepted_ahead) {
    auto listener = listen();
    std::vector<testing::raw_peer> clients;
    for (int each = 0; each < 20; ++each)
        clients.push_back(connect());
    run([&]() -> task<> {
        auto first = co_await listener.accept();
        EXPECT_TRUE(first);
        co_await turns(3);
        listener.close();
        co_await listener.closed();

        EXPECT_EQ(clients[0].peek(), -EAGAIN);
        for (std::size_t each = 1; each < clients.size(); ++each) {
            const auto end = clients[each].receive_to_the_end();
            EXPECT_TRUE(end == errc::end_of_stream || end == std::errc::connection_reset)
                << end.message();
        }
    });
    EXPECT_EQ(loop().metrics().open_descriptors, 0U);
}

TEST_P(tcp_listener_test, a_closed_listener_accepts_no_more) {
    auto listener = listen();
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
        const endpoint at = or_throw(listener.local_endpoint());
        listener.close();
        co_await listener.closed();
        EXPECT_EQ(error_of(co_await async_connect(at)), std::errc::connection_refused);
    });
}

TEST_P(tcp_listener_test, connections_that_are_not_accepted_end_with_their_loop) {
    auto listener = listen();
    std::vector<testing::raw_peer> clients;
    for (int each = 0; each < 20; ++each)
        clients.push_back(connect());
    run([&]() -> task<> { EXPECT_TRUE(co_await listener.accept()); });
    destroy_loop();

    for (auto& client : clients) {
        const auto end = client.receive_to_the_end();
        EXPECT_TRUE(end == errc::end_of_stream || end == std::errc::connection_reset);
    }
}

TEST_P(tcp_listener_test, a_flood_of_connections_does_not_starve_the_others) {
    auto listener = listen();
    auto [ours, theirs] = connected_pair();
    std::vector<testing::raw_peer> clients;
    for (int each = 0; each < 400; ++each)
        clients.push_back(connect());
    run([&]() -> task<> {
        std::size_t accepted = 0;
        auto accepting = spawn([&]() -> task<> {
            while (co_await listener.accept())
                ++accepted;
        });
        std::array<std::byte, 8> buffer;
        EXPECT_TRUE(co_await theirs.write_some("ping"));
        EXPECT_TRUE(co_await ours.read_some(buffer));
        EXPECT_LT(accepted, 400U);
        co_await until([&] { return accepted == 400; });
        accepting.request_stop();
        co_await accepting;
    });
}

// --- shortage of descriptors ---------------------------------------------------------------------

TEST_P(tcp_listener_test, without_descriptors_the_loop_does_not_spin_and_keeps_serving) {
    auto listener = listen();
    auto [ours, theirs] = connected_pair();
    std::vector<unique_fd> clients;
    for (int each = 0; each < 8; ++each)
        clients.push_back(make_socket());
    run([&]() -> task<> {
        std::array<std::byte, 8> buffer;
        EXPECT_FALSE(co_await with_timeout(ours.read_some(buffer), 1ms)); // registers the stream
        testing::descriptor_limit limit;
        std::size_t accepted = 0;
        auto accepting = spawn([&]() -> task<> {
            while (co_await listener.accept())
                ++accepted;
        });
        for (const auto& each : clients)
            start_connecting(each);
        co_await turns(5);

        const auto before = loop().metrics().turns;
        co_await async_sleep(60ms);
        EXPECT_LT(loop().metrics().turns - before, 40U);
        EXPECT_EQ(accepted, 0U);
        for (int round = 0; round < 20; ++round) {
            EXPECT_TRUE(co_await theirs.write_some("ping"));
            EXPECT_EQ((co_await ours.read_some(buffer)).value_or(0), 4U);
        }

        limit.lift();
        co_await until([&] { return accepted == clients.size(); }); // without further help
        accepting.request_stop();
        co_await accepting;
    });
}

TEST_P(tcp_listener_test, accepting_resumes_as_soon_as_the_loop_closes_a_descriptor) {
    auto listener = listen();
    auto [ours, theirs] = connected_pair();
    std::vector<unique_fd> clients;
    for (int each = 0; each < 2; ++each)
        clients.push_back(make_socket());
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("x"));
        EXPECT_TRUE(co_await theirs.write_some("x"));
        testing::descriptor_limit limit;
        std::vector<tcp_stream> accepted;
        auto accepting = spawn([&]() -> task<> {
            for (;;) {
                auto stream = co_await listener.accept();
                if (!stream) break;
                accepted.push_back(*std::move(stream));
            }
        });
        for (const auto& each : clients)
            start_connecting(each);
        co_await async_sleep(40ms); // the pauses have become longer than a few turns

        ours.close();
        co_await ours.closed();
        for (int turn = 0; turn < 10 && accepted.empty(); ++turn)
            co_await yield();
        EXPECT_EQ(accepted.size(), 1U);
        co_await turns(5);
        EXPECT_EQ(accepted.size(), 1U);
        theirs.close();
        for (int turn = 0; turn < 10 && accepted.size() < 2; ++turn)
            co_await yield();
        EXPECT_EQ(accepted.size(), 2U);
        accepting.request_stop();
        co_await accepting;
    });
}

TEST_P(tcp_listener_test, several_listeners_without_descriptors_all_resume) {
    std::vector<tcp_listener> listeners;
    std::vector<unique_fd> clients;
    for (int each = 0; each < 6; ++each)
        clients.push_back(make_socket());
    auto [ours, theirs] = connected_pair();
    run([&]() -> task<> {
        EXPECT_TRUE(co_await ours.write_some("x"));
        std::size_t accepted = 0;
        std::vector<join_handle<void>> accepting;
        std::vector<endpoint> at;
        for (int each = 0; each < 3; ++each) {
            listeners.push_back(listen());
            at.push_back(or_throw(listeners.back().local_endpoint()));
        }
        testing::descriptor_limit limit;
        for (int each = 0; each < 3; ++each) {
            auto accept = [&, each]() -> task<> {
                while (co_await listeners[each].accept()) // closes each connection at once
                    ++accepted;
            };
            accepting.push_back(spawn(accept));
            for (int client = 0; client < 2; ++client) {
                sockaddr_in address{};
                address.sin_family = AF_INET;
                address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                address.sin_port = htons(at[each].port());
                ::connect(clients[2 * each + client].get(), reinterpret_cast<sockaddr*>(&address),
                          sizeof address);
            }
        }
        co_await turns(10);
        EXPECT_EQ(accepted, 0U);
        ours.close(); // one descriptor, free again after each accept
        co_await until([&] { return accepted == 6; });
        for (auto& each : accepting)
            each.request_stop();
        for (auto& each : accepting)
            co_await each;
    });
}

// With io_uring, the end of the first accept must let the other listener accept, not itself again.
TEST_P(tcp_listener_test, a_listener_that_closes_lets_another_one_accept) {
    auto listener = listen();
    auto closing = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const auto there = or_throw(closing.local_endpoint());
    auto client = make_socket();
    auto other = make_socket();
    run([&]() -> task<> {
        testing::descriptor_limit limit;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(there.port());
        ::connect(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
        auto first =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await closing.accept()), canceled); });
        co_await async_sleep(80ms); // the pauses have become longer than a few turns
        bool accepted = false;
        auto second =
            spawn([&]() -> task<> { accepted = (co_await listener.accept()).has_value(); });
        start_connecting(client);
        co_await async_sleep(50ms);
        EXPECT_FALSE(accepted);

        closing.close();
        co_await first;
        for (int turn = 0; turn < 10 && !accepted; ++turn)
            co_await yield();
        EXPECT_TRUE(accepted);
        limit.lift();
        co_await second;
    });
}

TEST_P(tcp_listener_test, an_accept_that_waits_for_descriptors_can_be_stopped_and_closed) {
    auto listener = listen();
    auto client = make_socket();
    run([&]() -> task<> {
        // The accept is armed only here: io_uring uses the limit in force at that moment.
        testing::descriptor_limit limit;
        start_connecting(client);
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 5ms)), errc::deadline_exceeded);
        auto accepting =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await listener.accept()), canceled); });
        co_await turns(5);
        accepting.request_stop();
        co_await accepting;

        auto closing =
            spawn([&]() -> task<> { EXPECT_EQ(error_of(co_await listener.accept()), canceled); });
        co_await turns(5);
        listener.close();
        co_await closing;
        EXPECT_TRUE(co_await listener.closed());
    });
}

// On io_uring, an armed accept must not keep the socket listening until the next turn.
TEST_P(tcp_listener_test, a_closed_listener_refuses_connections_and_frees_its_address) {
    run([&]() -> task<> {
        auto listener = listen();
        const endpoint at = or_throw(listener.local_endpoint());
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);

        listener.close();

        EXPECT_EQ(error_of(co_await async_connect(at)), std::errc::connection_refused);
        EXPECT_TRUE(tcp_listener::bind(at));
    });
}

// Each message is a piece of work that io_uring does before it handles a cancel, 20 at a time.
TEST_P(tcp_listener_test, a_closed_listener_frees_its_address_on_a_busy_loop) {
    std::vector<testing::raw_connection<tcp_stream>> busy;
    for (int each = 0; each < 200; ++each)
        busy.push_back(testing::connect_raw());
    run([&]() -> task<> {
        task_group readers;
        for (auto& each : busy) {
            readers.spawn([](tcp_stream& stream) -> task<> {
                std::array<std::byte, 8> bytes{};
                EXPECT_TRUE(co_await stream.read_some(bytes));
            }(each.ours));
        }
        auto listener = listen();
        const endpoint at = or_throw(listener.local_endpoint());
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);

        for (auto& each : busy)
            each.theirs.send("ping");
        listener.close();

        EXPECT_TRUE(tcp_listener::bind(at));
        static_cast<void>(co_await readers.join());
    });
}

TEST_P(tcp_listener_test, closing_it_ends_an_accept_in_a_later_turn_and_frees_its_descriptor) {
    run([&]() -> task<> {
        auto listener = listen();
        const int number = listener.native_handle();
        bool ended = false;
        auto accepting = spawn([&]() -> task<> {
            EXPECT_EQ(error_of(co_await listener.accept()), canceled);
            ended = true;
        });
        co_await turns(3);
        listener.close();
        EXPECT_FALSE(ended);
        EXPECT_FALSE(testing::is_open(number));
        EXPECT_TRUE(co_await listener.closed());
        co_await accepting;
    });
    EXPECT_EQ(loop().metrics().open_descriptors, 0U);
}

// --- accepting ahead -----------------------------------------------------------------------------

// A proxy needs descriptors for its own connections, so accepting ahead must not take them all.
TEST_P(tcp_listener_test, nothing_is_accepted_ahead_when_descriptors_are_scarce) {
    auto listener = listen();
    std::vector<unique_fd> clients;
    for (int each = 0; each < 20; ++each)
        clients.push_back(make_socket());
    run([&]() -> task<> {
        testing::descriptor_limit limit{40};
        EXPECT_EQ(error_of(co_await with_timeout(listener.accept(), 1ms)), errc::deadline_exceeded);
        const std::size_t before = testing::open_descriptors();
        for (std::size_t wanted = 1; wanted <= 3; ++wanted) {
            std::vector<tcp_stream> accepted;
            auto accepting = spawn([&]() -> task<> {
                while (accepted.size() < wanted)
                    accepted.push_back(or_throw(co_await listener.accept()));
            });
            for (int each = 0; each < 6; ++each) {
                start_connecting(clients.back());
                clients.pop_back();
                co_await turns(2);
            }
            co_await accepting;
            co_await turns(5);
            EXPECT_EQ(testing::open_descriptors(), before - 6 * wanted + wanted);
        }
    });
}

// Connections inherit the option: the loop would block in the close(2) of each.
TEST_P(tcp_listener_test, set_linger_accepts_only_zero_and_none) {
    auto listener = listen();
    EXPECT_TRUE(listener.set_linger(0s));
    EXPECT_EQ(or_throw(listener.linger()), 0s);
    EXPECT_TRUE(listener.set_linger(std::nullopt));
    EXPECT_EQ(error_of(listener.set_linger(1s)), std::errc::invalid_argument);
    EXPECT_EQ(or_throw(listener.linger()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_listener_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
