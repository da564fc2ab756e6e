// Faults in every call, completion and allocation of clients: frames, pools, and connections that
// are made again.

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <chrono>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;
using testing::make_connection;

class client_faults_test : public testing::fail_everywhere_test {};

class exchanging_frames : public fault_scenario {
    static task<result<>> send(tcp_stream stream) {
        frame_writer writer{stream};
        for (const std::string_view body : {"one", "", "and three"}) {
            const auto written = co_await writer.write_frame(body);
            if (!written) co_return fail(written);
        }
        const const_buffer pieces[] = {"fo", "ur"};
        const auto written = co_await writer.write_frame(std::span{pieces});
        if (!written) co_return fail(written);
        co_return co_await async_close_lingering(stream);
    }
    task<result<>> receive(tcp_stream stream) {
        frame_reader reader{std::move(stream)};
        for (int frames = 0; frames < 4; ++frames) {
            const auto body = co_await reader.read_frame(100);
            if (!body) co_return fail(body);
            got_.append(reinterpret_cast<const char*>(body->data()), body->size()).append("|");
        }
        reader.stream().close();
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(
            co_await gather(send(std::move(ends.client)), receive(std::move(ends.server))));
        co_return got_;
    }
    std::string got_;
};
TEST_P(client_faults_test, frames) {
    fail_everywhere<exchanging_frames>();
}

class borrowing_in_turn : public fault_scenario {
    task<result<>> use(connection_pool<duplex_stream>& pool, std::string key) {
        for (int times = 0; times < 2; ++times) {
            auto lent = co_await pool.borrow(key);
            if (!lent) co_return fail(lent);
            co_await yield();
            if (times == 0) lent->give_back();
        }
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        std::deque<duplex_stream> peers;
        auto connect = [&](std::string_view) -> task<result<duplex_stream>> {
            co_await yield();
            auto [ours, theirs] = duplex(10);
            peers.push_back(std::move(theirs));
            co_return std::move(ours);
        };
        connection_pool<duplex_stream> pool{connect, {.per_key = 1, .total = 2}};
        co_await or_return(
            co_await gather(use(pool, "a"), use(pool, "a"), use(pool, "b"), use(pool, "c")));
        co_return pool.size() == pool.idle() ? "all returned" : "places were lost";
    }
};
TEST_P(client_faults_test, connection_pool) {
    fail_everywhere<borrowing_in_turn>();
}

class pooling_sockets : public fault_scenario {
    static task<result<>> serve(tcp_listener& listener) {
        auto first = co_await listener.accept();
        if (!first) co_return fail(first);
        std::string text(4, '\0');
        const auto heard = co_await async_read_exact(*first, text);
        if (!heard) co_return fail(heard);
        co_return result<>{};
    }
    static task<result<>> use(connection_pool<tcp_stream>& pool) {
        for (const std::string_view word : {"on", "ce"}) {
            auto lent = co_await pool.borrow("server");
            if (!lent) co_return fail(lent);
            const auto sent = co_await async_write_all(**lent, word);
            if (!sent) co_return fail(sent);
            lent->give_back();
        }
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        auto connect = [at](std::string_view) { return async_connect(at); };
        connection_pool<tcp_stream> pool{connect};
        co_await or_return(co_await gather(serve(listener), use(pool)));
        co_return "used twice";
    }
};
TEST_P(client_faults_test, pool_of_sockets) {
    fail_everywhere<pooling_sockets>();
}

/// A client survives what happens to its connections, but not what happens to its server.
class connecting_again : public fault_scenario {
    static task<result<>> serve(tcp_listener& listener) {
        for (int clients = 0;; ++clients) {
            auto stream = co_await listener.accept();
            if (!stream) co_return fail(stream);
            if (clients == 0) continue; // closed
            static_cast<void>(co_await async_write_all(*stream, "good"));
        }
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        tcp_client client{"127.0.0.1", at.port(), {.backoff = {.initial = 50us, .maximum = 1ms}}};
        std::string got(4, '\0');
        auto session = [&](tcp_stream& stream) -> task<result<>> {
            const auto read = co_await async_read_exact(stream, got);
            if (!read) co_return fail(read);
            co_return result<>{};
        };
        const auto first = co_await when_any(serve(listener), client.run(session));
        if (first.index == 0) co_return fail(*std::get<0>(first.values));
        co_await or_return(*std::get<1>(first.values));
        co_return got;
    }
};
TEST_P(client_faults_test, tcp_client) {
    fail_everywhere<connecting_again>();
}

INSTANTIATE_TEST_SUITE_P(backends, client_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
