#include <simplenet/net/local_datagram.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_messages.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/time/deadline.hpp>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::temporary_directory;
using testing::text_of;
using testing::turns;

class local_datagram_test : public testing::backend_test {
protected:
    /// A socket with a unique abstract name.
    static local_datagram bound() { return or_throw(local_datagram::bind(local_endpoint{})); }
    static local_endpoint name_of(const local_datagram& socket) {
        return or_throw(socket.local_endpoint());
    }

    /// Sends until no more fits; returns the number sent.
    template <class Send>
    static task<int> fill(Send send) {
        int sent = 0;
        for (;; ++sent) {
            const std::string text = std::to_string(sent);
            auto attempt = send(text);
            const auto outcome = co_await with_timeout(std::move(attempt), 0s);
            if (!outcome) {
                EXPECT_EQ(error_of(outcome), errc::deadline_exceeded);
                co_return sent;
            }
        }
    }

    std::array<char, 16> buffer_{};
};

TEST_P(local_datagram_test, datagrams_travel_by_path_by_abstract_name_and_within_pairs) {
    const temporary_directory directory;
    const auto path = or_throw(local_endpoint::parse(directory / "socket"));
    const auto name = or_throw(
        local_endpoint::abstract("simplenet local_datagram_test " + std::to_string(::getpid())));
    run([&]() -> task<> {
        auto by_path = or_throw(local_datagram::bind(path));
        auto by_name = or_throw(local_datagram::bind(name));
        auto nameless = or_throw(local_datagram::open());
        EXPECT_EQ(co_await nameless.send_to("a", path), 1U);
        EXPECT_EQ(co_await by_path.receive_from(buffer_), (local_message{.size = 1}));
        EXPECT_EQ(co_await by_path.send_to("bc", name), 2U);
        EXPECT_EQ(co_await by_name.receive_from(buffer_), (local_message{.size = 2, .from = path}));
        EXPECT_EQ(co_await by_name.send_to("def", path), 3U);
        EXPECT_EQ(co_await by_path.receive_from(buffer_), (local_message{.size = 3, .from = name}));

        auto [left, right] = or_throw(local_datagram::pair());
        EXPECT_EQ(co_await left.send("over"), 4U);
        EXPECT_EQ(co_await left.send(const_buffer{}), 0U);
        EXPECT_EQ((co_await right.receive(buffer_))->size, 4U);
        const auto empty = co_await right.receive(buffer_);
        EXPECT_TRUE(empty && empty->size == 0);

        EXPECT_EQ(error_of(local_datagram::bind(path)), std::errc::address_in_use);
        by_path.close();
        EXPECT_TRUE(local_datagram::bind(path, {.unlink_existing = true}));
        EXPECT_TRUE(local_datagram::bind(path, {.unlink_existing = true})->unlink_path());
        EXPECT_EQ(error_of(co_await nameless.send_to("a", path)),
                  std::errc::no_such_file_or_directory);
    });
}

TEST_P(local_datagram_test, a_connected_socket_receives_only_from_its_peer) {
    run([&]() -> task<> {
        auto server = bound();
        auto client = or_throw(local_datagram::connect(name_of(server)));
        EXPECT_EQ(co_await client.send("hello"), 5U);
        const auto got = co_await server.receive_from(buffer_);
        EXPECT_TRUE(got && got->from.is_unnamed());
        auto peer = bound();
        EXPECT_TRUE(peer.connect_to(name_of(server)));
        auto stranger = bound();
        EXPECT_EQ(error_of(co_await stranger.send_to("x", name_of(peer))),
                  std::errc::operation_not_permitted);
        EXPECT_TRUE(peer.disconnect());
        EXPECT_EQ(co_await stranger.send_to("x", name_of(peer)), 1U);
        EXPECT_EQ(error_of(co_await stranger.send("x")), std::errc::not_connected);
    });
}

TEST_P(local_datagram_test, a_truncated_datagram_is_marked) {
    auto [left, right] = or_throw(local_datagram::pair());
    run([&]() -> task<> {
        EXPECT_TRUE(co_await left.send(std::string(20, 'x')));
        const auto cut = co_await right.receive(buffer_);
        EXPECT_TRUE(cut && cut->truncated && cut->size == 16 && cut->missing == 4);
        EXPECT_EQ(error_of(co_await left.send(std::string(4 << 20, 'x'))), std::errc::message_size);
    });
}

TEST_P(local_datagram_test, a_closed_peer_is_reported) {
    run([&]() -> task<> {
        auto server = bound();
        const auto name = name_of(server);
        auto client = or_throw(local_datagram::connect(name));
        server.close();
        EXPECT_EQ(error_of(co_await client.send("x")), std::errc::connection_refused);
        EXPECT_EQ(error_of(co_await client.send_to("x", name)), std::errc::connection_refused);
        // Also while somebody receives.
        auto waiting = spawn(
            [&]() -> task<> { EXPECT_EQ(error_of(co_await client.receive(buffer_)), canceled); });
        co_await testing::turns(3);
        EXPECT_EQ(error_of(co_await client.send_to("x", name)), std::errc::connection_refused);
        waiting.request_stop();
        co_await waiting;
    });
}

TEST_P(local_datagram_test, a_batch_arrives_in_order_through_a_small_queue) {
    auto [left, right] = or_throw(local_datagram::pair());
    EXPECT_TRUE(left.set_send_buffer(4096));
    run([&]() -> task<> {
        std::vector<std::string> texts;
        std::vector<outgoing_message> batch;
        for (int at = 0; at < 500; ++at)
            texts.push_back(std::to_string(at));
        for (const std::string& text : texts)
            batch.push_back({.data = text});
        auto sender =
            spawn([&]() -> task<> { EXPECT_EQ(co_await left.send_batch(batch), batch.size()); });
        std::array<std::array<char, 8>, 5> memory;
        std::array<incoming_message, 5> places;
        for (std::size_t at = 0; at < places.size(); ++at)
            places[at].into = memory[at];
        for (std::size_t got = 0; got < texts.size();) {
            const auto count = co_await right.receive_batch(places);
            EXPECT_TRUE(count);
            for (std::size_t at = 0; at < count.value_or(500); ++at, ++got)
                EXPECT_EQ(text_of(places[at].data()), texts[got]);
        }
        co_await sender;
    });
}

TEST_P(local_datagram_test, a_stopped_batch_says_how_many_were_sent) {
    auto [left, right] = or_throw(local_datagram::pair());
    EXPECT_TRUE(left.set_send_buffer(4096));
    run([&]() -> task<> {
        const std::vector<outgoing_message> batch(1000, {.data = "x"});
        const auto sent = co_await with_timeout(left.send_batch(batch), 1ms);
        EXPECT_EQ(error_of(sent), errc::deadline_exceeded);
        EXPECT_GT(sent.error().transferred, 0U);
        for (std::size_t got = 0; got < sent.error().transferred; ++got)
            EXPECT_TRUE(co_await right.receive(buffer_));
        EXPECT_EQ(error_of(co_await with_timeout(right.receive(buffer_), 0s)),
                  errc::deadline_exceeded);
    });
}

/// The ways to send into a full queue: to a connected peer, whose room the kernel reports, or to a
/// name, whose room it does not report.
enum class sending { connected, by_name };

TEST_P(local_datagram_test, a_send_into_a_full_queue_waits_until_there_is_room) {
    for (const sending way : {sending::connected, sending::by_name}) {
        run([&]() -> task<> {
            auto server = bound();
            const auto name = name_of(server);
            auto client = bound();
            auto other = bound(); // fills the queue, which then has nothing of the client's
            if (way == sending::connected) {
                EXPECT_TRUE(client.connect_to(name));
            }
            const auto send = [&](local_datagram& from, std::string_view text) {
                return way == sending::connected && &from == &client ? from.send(text)
                                                                     : from.send_to(text, name);
            };
            const int filled =
                co_await fill([&](std::string_view text) { return send(other, text); });
            EXPECT_GT(filled, 0);

            bool sent = false;
            auto waiting = spawn([&]() -> task<> {
                EXPECT_TRUE(co_await send(client, "at last"));
                sent = true;
            });
            co_await turns(20);
            EXPECT_FALSE(sent);
            for (int at = 0; at < filled; ++at)
                EXPECT_TRUE(co_await server.receive_from(buffer_));
            EXPECT_EQ((co_await server.receive_from(buffer_))->size, 7U);
            co_await waiting;
        });
    }
}

TEST_P(local_datagram_test, a_send_into_a_full_queue_can_be_stopped_and_closed) {
    for (const sending way : {sending::connected, sending::by_name}) {
        run([&]() -> task<> {
            auto server = bound();
            const auto name = name_of(server);
            std::optional<local_datagram> client{bound()};
            if (way == sending::connected) {
                EXPECT_TRUE(client->connect_to(name));
            }
            const auto send = [&](std::string_view text) {
                return way == sending::connected ? client->send(text) : client->send_to(text, name);
            };
            const int filled = co_await fill(send);
            EXPECT_GT(filled, 0);
            EXPECT_EQ(error_of(co_await with_timeout(send({}), 1ms)), errc::deadline_exceeded)
                << "an empty datagram needs room too";
            EXPECT_EQ(error_of(co_await with_timeout(send("x"), 3ms)), errc::deadline_exceeded);

            auto waiting =
                spawn([&]() -> task<std::error_code> { co_return error_of(co_await send("x")); });
            co_await turns(5);
            waiting.request_stop();
            EXPECT_EQ(co_await waiting, canceled);

            // Another socket's queue has room, whatever the state of this one.
            if (way == sending::by_name) {
                auto elsewhere = bound();
                EXPECT_TRUE(co_await client->send_to("x", name_of(elsewhere)));
            }

            auto last =
                spawn([&]() -> task<std::error_code> { co_return error_of(co_await send("x")); });
            co_await turns(5);
            client.reset();
            EXPECT_EQ(co_await last, canceled);
            for (int at = 0; at < filled; ++at)
                EXPECT_TRUE(co_await server.receive_from(buffer_));
            EXPECT_EQ(error_of(co_await with_timeout(server.receive_from(buffer_), 0s)),
                      errc::deadline_exceeded);
        });
    }
}

TEST_P(local_datagram_test, a_waiting_send_does_not_keep_the_thread_busy) {
    run([&]() -> task<> {
        auto server = bound();
        auto client = bound();
        const auto name = name_of(server);
        co_await fill([&](std::string_view text) { return client.send_to(text, name); });
        auto before = loop().metrics().turns;
        EXPECT_EQ(error_of(co_await with_timeout(client.send_to("x", name), 100ms)),
                  errc::deadline_exceeded);
        EXPECT_LT(loop().metrics().turns - before, 60U);

        EXPECT_TRUE(client.connect_to(name));
        before = loop().metrics().turns;
        EXPECT_EQ(error_of(co_await with_timeout(client.send("x"), 100ms)),
                  errc::deadline_exceeded);
        EXPECT_LT(loop().metrics().turns - before, 60U);
    });
}

TEST_P(local_datagram_test, the_end_of_the_loop_ends_its_waits) {
    std::optional<local_datagram> server{bound()};
    std::optional<local_datagram> client{bound()};
    const auto name = name_of(*server);
    std::array<std::error_code, 2> ended;
    run([&]() -> task<> {
        co_await fill([&](std::string_view text) { return client->send_to(text, name); });
    });
    auto sending = [&]() -> task<> { ended[0] = error_of(co_await client->send_to("x", name)); };
    auto receiving = [&]() -> task<> {
        ended[1] = error_of(co_await client->receive_from(buffer_));
    };
    loop().spawn(sending()).detach();
    loop().spawn(receiving()).detach();
    for (int turn = 0; turn < 3; ++turn)
        loop().poll();
    destroy_loop();
    EXPECT_EQ(ended[0], canceled);
    EXPECT_EQ(ended[1], canceled);
}

TEST_P(local_datagram_test, attached_descriptors_are_dropped) {
    auto [left, right] = or_throw(local_datagram::pair());
    auto [out, in] = testing::make_pipe();
    const std::array<int, 1> fds{in.get()};
    testing::send_with(left.native_handle(), "abc", fds);
    in.reset();
    run([&]() -> task<> { EXPECT_EQ((co_await right.receive(buffer_))->size, 3U); });
    char end = 0;
    EXPECT_EQ(::read(out.get(), &end, 1), 0) << "another descriptor still holds the other end";
}

TEST_P(local_datagram_test, a_released_socket_works_elsewhere) {
    auto [left, right] = or_throw(local_datagram::pair());
    run([&]() -> task<> {
        EXPECT_TRUE(co_await left.send("waits"));
        auto plain = or_throw(co_await std::move(right).release());
        EXPECT_EQ(plain.receive(buffer_)->size, 5U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, local_datagram_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
