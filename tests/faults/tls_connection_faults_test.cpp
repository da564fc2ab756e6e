// Faults in every call, and in every allocation of ours and of OpenSSL, while connections of TLS
// begin and end.

#include "faults/tls_faults.hpp"

#include "tls/raw_tls.hpp"
#include "tls/tls_pair.hpp"

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/tls.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <openssl/ssl.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::converse;
using testing::echo_by_read_some;
using testing::exempt_allocations;
using testing::memory_stream;
using testing::server_with;
using testing::talking;
using testing::tls_faults_test;
using testing::tls_tcp;

class tls_connection_faults_test : public tls_faults_test {};

class shaking_hands : public talking {
public:
    shaking_hands()
        : talking{plain_server(), testing::client()} {}

private:
    task<result<std::string>> play() override { return talk(); }
};
TEST_P(tls_connection_faults_test, full_handshake_and_close) {
    fail_everywhere<shaking_hands>();
}

class shaking_hands_twice : public talking {
public:
    shaking_hands_twice()
        : talking{server_with(), testing::client()} {}

private:
    task<result<std::string>> play() override {
        const std::string first = co_await or_return(co_await talk());
        const std::string second = co_await or_return(co_await talk());
        co_return first + second;
    }
};
TEST_P(tls_connection_faults_test, resumption) {
    fail_everywhere<shaking_hands_twice>();
}

/// The session was made before the faults.
class resuming : public talking {
public:
    resuming()
        : talking{server_with(), testing::client()} {}

    static inline int resumed = 0;

private:
    task<result<std::string>> play() override {
        {
            const exempt_allocations before;
            auto ends = testing::connected(server_, client_);
            co_await or_return(co_await talk_by(std::move(ends.client), std::move(ends.server)));
        }
        auto both = co_await or_return(co_await connect());
        co_await or_return(co_await gather(both.client.handshake(), both.server.handshake()));
        if (both.client.info().resumed) ++resumed;
        co_return co_await talk_by(std::move(both.client), std::move(both.server));
    }
};
TEST_P(tls_connection_faults_test, a_connection_that_resumes) {
    resuming::resumed = 0;
    fail_everywhere<resuming>();
    EXPECT_GT(resuming::resumed, 0);
}

/// async_connect() of TLS.
class connecting : public talking {
public:
    connecting()
        : talking{server_with(), testing::client()} {}

private:
    static task<result<>> serve(tcp_listener& at, const tls::context& with) {
        auto transport = co_await at.accept();
        if (!transport) co_return fail(transport);
        co_return co_await echo_by_read_some(tls_tcp{*std::move(transport), with});
    }
    static task<result<>> ask(std::uint16_t port, const tls::context& with, std::string& got) {
        auto made = co_await tls::async_connect("127.0.0.1", port, with, {.timeout = 1h});
        if (!made) co_return fail(made);
        co_return co_await converse(*std::move(made), "one two three", got);
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        std::string got;
        auto server = serve(listener, server_);
        auto client = ask(at.port(), client_, got);
        co_await or_return(co_await gather(std::move(server), std::move(client)));
        co_return got;
    }
};
TEST_P(tls_connection_faults_test, async_connect) {
    fail_everywhere<connecting>();
}

/// A tls::server. Allocations fail on its loop.
class serving : public talking {
public:
    serving()
        : talking{server_with(), testing::client()}
        , group_{or_throw(
              event_loop_group::create({.loops = 1, .loop = {.backend = tls_faults_test::used}}))} {
    }

    [[nodiscard]] bool crosses_threads() const override { return true; }
    [[nodiscard]] event_loop* failing_loop() noexcept override { return &group_[0]; }

private:
    static task<result<std::string>> ask(std::uint16_t port, const tls::context& with) {
        auto made = co_await tls::async_connect("127.0.0.1", port, with);
        if (!made) co_return fail(made);
        std::string got;
        const auto talked = co_await converse(*std::move(made), "one two three", got);
        if (!talked) co_return fail(talked);
        co_return got;
    }
    task<result<std::string>> play() override {
        auto server =
            co_await or_return(tls::server::listen(group_, endpoint::loopback(0), server_));
        co_await or_return(server.serve(echo_by_read_some<tls_tcp>));
        const auto got = co_await ask(server.local_endpoint().port(), client_);
        const shutdown_report report = co_await server.shutdown(1h);
        if (!got) co_return fail(got);
        const tls::server_statistics at_end = server.statistics();
        co_return *got + testing::told(report.cut, at_end.open, at_end.accepted - at_end.ended,
                                       at_end.handshakes_failed);
    }

    event_loop_group group_;
};
TEST_P(tls_connection_faults_test, server) {
    fail_everywhere<serving>();
}

// --- version 1.2 ---------------------------------------------------------------------------------

/// A call of OpenSSL in which nothing fails.
template <class Step>
auto exempt(Step step) {
    return [step](SSL* ssl) {
        const exempt_allocations theirs;
        return step(ssl);
    };
}

/// With a peer of OpenSSL's.
class talking_version_1_2 : public talking {
protected:
    talking_version_1_2()
        : talking{plain_server(), testing::client()} {}

    /// Says something and waits for an answer and the end, or the other way round.
    static task<result<>> play_raw(testing::raw_tls& raw, bool speaks_first) {
        auto shaken = co_await raw.until_done(exempt(SSL_do_handshake));
        auto speak = exempt([](SSL* ssl) { return SSL_write(ssl, "word", 4); });
        auto listen = exempt([](SSL* ssl) {
            std::array<char, 4> word{};
            return SSL_read(ssl, word.data(), static_cast<int>(word.size()));
        });
        if (shaken && speaks_first) shaken = co_await raw.until_done(speak);
        if (shaken) shaken = co_await raw.until_done(listen);
        if (shaken && !speaks_first) shaken = co_await raw.until_done(speak);
        auto leave = exempt([](SSL* ssl) { return SSL_shutdown(ssl) < 0 ? -1 : 1; });
        if (shaken) shaken = co_await raw.until_done(leave);
        if (!shaken) raw.transport().close();
        if (!shaken) co_return fail(std::errc::connection_aborted);
        co_return result<>{};
    }
};

class accepting_version_1_2 : public talking_version_1_2 {
    task<result<std::string>> play() override {
        auto [left, right] = duplex();
        std::optional<testing::raw_tls> raw;
        {
            const exempt_allocations theirs;
            raw.emplace(std::move(left), testing::raw_side::client, TLS1_2_VERSION);
        }
        auto server = echo_by_read_some(memory_stream{std::move(right), server_});
        auto client = play_raw(*raw, true);
        co_await or_return(co_await gather(std::move(server), std::move(client)));
        co_return "echoed";
    }
};
TEST_P(tls_connection_faults_test, a_server_of_version_1_2) {
    fail_everywhere<accepting_version_1_2>();
}

class connecting_version_1_2 : public talking_version_1_2 {
    task<result<std::string>> play() override {
        auto [left, right] = duplex();
        std::optional<testing::raw_tls> raw;
        {
            const exempt_allocations theirs;
            raw.emplace(std::move(left), testing::raw_side::server, TLS1_2_VERSION);
        }
        std::string got;
        memory_stream stream{std::move(right), client_, {.server_name = "localhost"}};
        auto server = play_raw(*raw, false);
        auto client = converse(std::move(stream), "word", got);
        co_await or_return(co_await gather(std::move(server), std::move(client)));
        co_return got;
    }
};
TEST_P(tls_connection_faults_test, a_client_of_version_1_2) {
    fail_everywhere<connecting_version_1_2>();
}

INSTANTIATE_TEST_SUITE_P(backends, tls_connection_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
