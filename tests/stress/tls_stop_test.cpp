// TLS is stopped at each of its suspensions, in both roles. Afterwards the stream is usable: every
// byte arrives once.

#include "tls/tls_pair.hpp"

#include "support/coroutines.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::memory_stream;
using testing::noise;
using testing::scenario;

class tls_stop_test : public testing::stop_everywhere_test {};

const tls::context& server_context() {
    static const tls::context made = testing::server_with("server", [](tls::server_config& config) {
        config.session_tickets = false; // otherwise only the first run has a full handshake
    });
    return made;
}
const tls::context& client_context() {
    static const tls::context made = testing::client();
    return made;
}

/// One end of a conversation, which continues where it was stopped.
class side {
public:
    side(memory_stream stream, std::string_view sends)
        : stream_{std::move(stream)}
        , left_{sends} {}

    /// Sends everything and reads to the end, both at once.
    task<result<>> go_on() {
        const auto [sent, read] = co_await when_all(send(), read_to_the_end());
        if (!sent) co_return fail(sent);
        co_return read;
    }
    [[nodiscard]] const std::string& got() const { return got_; }
    [[nodiscard]] memory_stream& stream() { return stream_; }

private:
    task<result<>> send() {
        while (!left_.empty()) {
            const auto count = co_await stream_.write_some(left_);
            if (!count) co_return fail(count);
            left_.remove_prefix(*count);
        }
        co_return co_await stream_.shutdown_write();
    }
    task<result<>> read_to_the_end() {
        std::array<char, 300> buffer{};
        while (!ended_) {
            const auto count = co_await stream_.read_some(mutable_buffer{buffer});
            ended_ = !count && count.error() == errc::end_of_stream;
            if (!count && !ended_) co_return fail(count);
            if (count) got_.append(buffer.data(), *count);
        }
        co_return result<>{};
    }

    memory_stream stream_;
    std::string_view left_;
    std::string got_;
    bool ended_ = false;
};

/// The subject is the client, or the server.
template <bool IsClient, std::size_t Capacity>
class conversing : public scenario {
public:
    conversing()
        : conversing{testing::connected(server_context(), client_context(),
                                        {.server_name = "localhost"}, Capacity)} {}

private:
    explicit conversing(testing::tls_ends ends)
        : server_{std::move(ends.server), back_}
        , client_{std::move(ends.client), forth_} {}

    task<> subject() override { expect_success_or_stop(co_await ours().go_on()); }
    task<> partner() override {
        const result<> ended = co_await theirs().go_on();
        if (ended) co_return;
        EXPECT_EQ(ended.error(), std::errc::operation_canceled);
    }
    task<> verify() override {
        const auto [at_client, at_server] = co_await when_all(client_.go_on(), server_.go_on());
        expect_success(at_client);
        expect_success(at_server);
        EXPECT_EQ(server_.got(), forth_);
        EXPECT_EQ(client_.got(), back_);
    }
    side& ours() { return IsClient ? client_ : server_; }
    side& theirs() { return IsClient ? server_ : client_; }

    const std::string forth_ = noise(1500, 1);
    const std::string back_ = noise(700, 2);
    side server_;
    side client_;
};
TEST_P(tls_stop_test, a_client_in_small_pieces) {
    stop_everywhere<conversing<true, 150>>();
}
TEST_P(tls_stop_test, a_server_in_small_pieces) {
    stop_everywhere<conversing<false, 150>>();
}
TEST_P(tls_stop_test, a_client) {
    stop_everywhere<conversing<true, 100'000>>();
}
TEST_P(tls_stop_test, a_server) {
    stop_everywhere<conversing<false, 100'000>>();
}

/// The stopped side only reads afterwards: what it owes to the handshake has to leave nevertheless.
template <bool IsClient>
class shaking_hands : public scenario {
    task<> subject() override {
        expect_success_or_stop(co_await (IsClient ? ends_.client : ends_.server).handshake());
    }
    task<> partner() override {
        const result<> made = co_await (IsClient ? ends_.server : ends_.client).handshake();
        if (made) co_return;
        EXPECT_EQ(made.error(), std::errc::operation_canceled);
    }
    task<> verify() override {
        auto& reads = IsClient ? ends_.client : ends_.server;
        auto& writes = IsClient ? ends_.server : ends_.client;
        std::array<char, 5> buffer{};
        const auto [sent, read] = co_await when_all(
            async_write_all(writes, "hello"), async_read_exact(reads, mutable_buffer{buffer}));
        expect_success(sent);
        expect_success(read);
        EXPECT_EQ(std::string_view(buffer.data(), buffer.size()), "hello");
    }
    testing::tls_ends ends_ =
        testing::connected(server_context(), client_context(), {.server_name = "localhost"}, 16);
};
TEST_P(tls_stop_test, a_handshake_of_a_client_that_then_reads) {
    stop_everywhere<shaking_hands<true>>();
}
TEST_P(tls_stop_test, a_handshake_of_a_server_that_then_reads) {
    stop_everywhere<shaking_hands<false>>();
}

/// A stop closes at once.
class closing : public scenario {
    task<> subject() override {
        const result<> made = co_await ends_.client.handshake();
        expect_success_or_stop(made);
        if (!made) co_return;
        expect_success_or_stop(co_await ends_.client.async_close(1h));
        closes_ = true;
    }
    task<> partner() override {
        std::error_code end;
        static_cast<void>(co_await testing::read_all(ends_.server, end));
        static_cast<void>(co_await ends_.server.shutdown_write());
    }
    task<> verify() override {
        if (!closes_) co_return;
        EXPECT_EQ((co_await ends_.client.write_some("x")).error(), std::errc::bad_file_descriptor);
        std::array<char, 1> buffer{};
        const auto none = co_await ends_.server.read_some(mutable_buffer{buffer});
        EXPECT_FALSE(none);
    }
    testing::tls_ends ends_ =
        testing::connected(server_context(), client_context(), {.server_name = "localhost"}, 300);
    bool closes_ = false;
};
TEST_P(tls_stop_test, async_close) {
    stop_everywhere<closing>();
}

class connecting : public scenario {
    task<> subject() override { co_await connect(true); }
    task<> partner() override {
        for (;;) {
            auto accepted = co_await listener_.accept();
            if (!accepted) co_return;
            tls::stream<tcp_stream> peer{*std::move(accepted), server_context()};
            static_cast<void>(co_await async_write_all(peer, "hello"));
            std::error_code end;
            static_cast<void>(co_await testing::read_all(peer, end));
            static_cast<void>(co_await peer.shutdown_write());
        }
    }
    task<> verify() override {
        auto serving = spawn(partner());
        co_await connect(false);
        serving.request_stop();
        co_await serving;
    }
    task<> connect(bool stoppable) {
        auto made =
            co_await tls::async_connect("127.0.0.1", port_, client_context(), {.timeout = 1h});
        if (stoppable) expect_success_or_stop(made);
        if (!made) {
            EXPECT_TRUE(stoppable) << made.error().message();
            co_return;
        }
        std::array<char, 5> buffer{};
        const auto read = co_await async_read_exact(*made, mutable_buffer{buffer});
        if (stoppable) expect_success_or_stop(read);
        if (!stoppable) expect_success(read);
        const auto closed = co_await made->async_close(1h);
        if (stoppable) expect_success_or_stop(closed);
        if (!stoppable) expect_success(closed);
    }
    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    std::uint16_t port_ = or_throw(listener_.local_endpoint()).port();
};
TEST_P(tls_stop_test, connecting_to_a_host) {
    stop_everywhere<connecting>();
}

INSTANTIATE_TEST_SUITE_P(backends, tls_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
