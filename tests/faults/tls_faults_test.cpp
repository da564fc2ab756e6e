// Faults in every call, and in every allocation of TLS: ours and those of OpenSSL.

#include "tls/tls_pair.hpp"

#include "support/error_of.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/tls.hpp>

#include <array>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/crypto.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::certificate;
using testing::client_with;
using testing::content;
using testing::converse;
using testing::echo_by_read_some;
using testing::exempt_allocations;
using testing::fault_scenario;
using testing::make_connection;
using testing::noise;
using testing::server_with;

using tls_tcp = tls::stream<tcp_stream>;

// Before main(), because OpenSSL accepts other functions only before its first allocation.
const bool replaced =
    CRYPTO_set_mem_functions(
        [](std::size_t size, const char*, int) { return testing::failing_malloc(size); },
        [](void* memory, std::size_t size, const char*, int) {
            return testing::failing_realloc(memory, size);
        },
        [](void* memory, const char*, int) { testing::failing_free(memory); }) == 1;

class tls_faults_test : public testing::fail_everywhere_test {
protected:
    void SetUp() override {
        ASSERT_TRUE(replaced);
        fail_everywhere_test::SetUp();
        expect_caches();
    }
};

// --- contexts ------------------------------------------------------------------------------------

/// Every kind of file and text.
class making_contexts : public fault_scenario {
    task<result<std::string>> play() override {
        const std::array<std::string_view, 2> protocols{"h2", "http/1.1"};
        const std::array<tls::certificate_files, 2> more{
            tls::certificate_files{.chain_file = one_, .key_file = one_key_},
            tls::certificate_files{.chain_pem = rsa_, .key_pem = rsa_key_}};
        auto server =
            co_await or_return(tls::context::server({.certificate_chain_file = server_,
                                                     .private_key_file = server_key_,
                                                     .private_key_password = "secret",
                                                     .more_certificates = more,
                                                     .ask = tls::client_certificate::required,
                                                     .client_ca_file = root_,
                                                     .client_crl_file = revocations_,
                                                     .alpn = protocols}));
        auto client = co_await or_return(tls::context::client({.ca_pem = root_pem_,
                                                               .alpn = protocols,
                                                               .certificate_chain_file = client_,
                                                               .private_key_file = client_key_,
                                                               .crl_file = revocations_}));
        co_await or_return(server.reload());
        co_await or_return(client.reload());
        co_return "made";
    }
    const std::string root_ = certificate("root.pem");
    const std::string root_pem_ = content(root_);
    const std::string revocations_ = certificate("root.crl");
    const std::string server_ = certificate("server.pem");
    const std::string server_key_ = certificate("server_encrypted.key");
    const std::string one_ = certificate("one.pem");
    const std::string one_key_ = certificate("one.key");
    const std::string rsa_ = content(certificate("server_rsa.pem"));
    const std::string rsa_key_ = content(certificate("server_rsa.key"));
    const std::string client_ = certificate("client.pem");
    const std::string client_key_ = certificate("client.key");
};
TEST_P(tls_faults_test, contexts) {
    fail_everywhere<making_contexts>();
}

// --- connections ---------------------------------------------------------------------------------

/// The contexts exist before the faults.
class talking : public fault_scenario {
protected:
    static tls::context plain_server() {
        return server_with("server",
                           [](tls::server_config& config) { config.session_tickets = false; });
    }
    talking(tls::context server, tls::context client)
        : server_{std::move(server)}
        , client_{std::move(client)} {}

    /// Both ends of a connection, before the handshake.
    struct ends {
        tls_tcp client;
        tls_tcp server;
    };
    task<result<ends>> connect() {
        auto made = co_await make_connection();
        if (!made) co_return fail(made);
        co_return ends{tls_tcp{std::move(made->client), client_, {.server_name = "localhost"}},
                       tls_tcp{std::move(made->server), server_}};
    }
    task<result<std::string>> talk() {
        std::string got;
        auto both = co_await connect();
        if (!both) co_return fail(both);
        auto server = echo_by_read_some(std::move(both->server));
        auto client = converse(std::move(both->client), "one two three", got);
        const auto ended = co_await gather(std::move(server), std::move(client));
        if (!ended) co_return fail(ended);
        co_return got;
    }

    tls::context server_;
    tls::context client_;
};

class shaking_hands : public talking {
public:
    shaking_hands()
        : talking{plain_server(), testing::client()} {}

private:
    task<result<std::string>> play() override { return talk(); }
};
TEST_P(tls_faults_test, full_handshake_and_close) {
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
TEST_P(tls_faults_test, resumption) {
    fail_everywhere<shaking_hands_twice>();
}

tls::context asking_server() {
    const std::string root = certificate("root.pem");
    return server_with("server", [&](tls::server_config& config) {
        config.ask = tls::client_certificate::required;
        config.client_ca_file = root;
    });
}
tls::context client_named(const std::string& name) {
    const std::string chain = certificate(name + ".pem");
    const std::string key = certificate(name + ".key");
    return client_with([&](tls::client_config& config) {
        config.certificate_chain_file = chain;
        config.private_key_file = key;
    });
}

/// Both sides look at the certificate of the other one.
class introducing_both : public talking {
public:
    introducing_both()
        : talking{asking_server(), client_named("client")} {}

private:
    static task<result<std::string>> name_of_peer(tls_tcp& at) {
        const auto made = co_await at.handshake();
        if (!made) co_return fail(made);
        const auto& peer = at.info().peer_certificate;
        if (!peer) co_return "nobody";
        co_return peer->subject() + ' ' + std::to_string(peer->names().size()) + ' ' +
            std::to_string(peer->fingerprint_sha256().size() + peer->serial().size());
    }
    task<result<std::string>> play() override {
        auto both = co_await or_return(co_await connect());
        auto named = co_await or_return(
            co_await gather(name_of_peer(both.server), name_of_peer(both.client)));
        co_return std::get<0>(named) + ' ' + std::get<1>(named);
    }
};
TEST_P(tls_faults_test, certificates_of_both_sides) {
    fail_everywhere<introducing_both>();
}

// --- who is refused ------------------------------------------------------------------------------

/// A connection that must not be made, whatever fails.
class being_refused : public talking {
protected:
    using talking::talking;

private:
    /// The error, as text unless it is about memory or the transport.
    static task<result<std::string>> outcome_of(tls_tcp& at) {
        const auto made = co_await at.handshake();
        if (!made) at.close();
        co_return made ? "accepted" : "refused";
    }
    task<result<std::string>> play() override {
        auto both = co_await or_return(co_await connect());
        auto outcomes =
            co_await or_return(co_await gather(outcome_of(both.server), outcome_of(both.client)));
        co_return judged(std::get<0>(outcomes), std::get<1>(outcomes));
    }
    virtual std::string judged(const std::string& server, const std::string& client) const = 0;
};

class refusing_a_server : public being_refused {
public:
    refusing_a_server()
        : being_refused{server_with("unknown_issuer"), testing::client()} {}
    std::string judged(const std::string&, const std::string& client) const override {
        return client;
    }
};
TEST_P(tls_faults_test, a_server_that_is_refused) {
    fail_everywhere<refusing_a_server>();
}

class refusing_a_client : public being_refused {
public:
    refusing_a_client()
        : being_refused{asking_server(), testing::client()} {}
    std::string judged(const std::string& server, const std::string&) const override {
        return server;
    }
};
TEST_P(tls_faults_test, a_client_that_is_refused) {
    fail_everywhere<refusing_a_client>();
}

// --- no byte is lost -----------------------------------------------------------------------------

/// Both directions at once, in operations that are repeated when memory is short.
class enduring : public talking {
public:
    enduring()
        : talking{plain_server(), testing::client()} {}

private:
    static constexpr int most_tries = 8;

    /// Lacking memory is an error as any other.
    template <class Make>
    static auto tried(Make make) -> decltype(make()) {
        try {
            auto outcome = co_await make();
            co_return outcome;
        } catch (const std::bad_alloc&) {
        }
        co_return fail(std::errc::not_enough_memory);
    }
    /// Again and again, while only memory is missing.
    template <class Make>
    static auto persistently(Make make) -> decltype(make()) {
        for (int tries = 0;; ++tries) {
            auto outcome = co_await tried(make);
            if (outcome || outcome.error() != std::errc::not_enough_memory || tries == most_tries) {
                co_return outcome;
            }
        }
    }
    template <class S>
    static task<result<>> send(S& to, std::string_view text) {
        while (!text.empty()) {
            auto write = [&] { return to.write_some(text); };
            const auto count = co_await persistently(write);
            if (!count) co_return fail(count);
            text.remove_prefix(*count);
        }
        auto end = [&] { return to.shutdown_write(); };
        co_return co_await persistently(end);
    }
    template <class S>
    static task<result<>> receive(S& from, std::string& got) {
        std::array<char, 5000> buffer{};
        auto read = [&] { return from.read_some(mutable_buffer{buffer}); };
        for (;;) {
            const auto count = co_await persistently(read);
            if (!count) co_return testing::ended(count.error());
            got.append(buffer.data(), *count);
        }
    }
    task<result<std::string>> play() override {
        auto both = co_await or_return(co_await connect());
        co_return co_await exchange(both.client, both.server);
    }

protected:
    template <class S>
    task<result<std::string>> exchange(S& client, S& server) {
        const auto ended = co_await gather(send(client, forth_), receive(server, went_),
                                           send(server, back_), receive(client, came_));
        if (!forth_.starts_with(went_) || !back_.starts_with(came_)) co_return "other bytes";
        if (!ended) co_return fail(ended);
        co_return went_ == forth_&& came_ == back_ ? "all of it" : "bytes are missing";
    }

private:
    const std::string forth_ = noise(150'000, 1);
    const std::string back_ = noise(40'000, 2);
    std::string went_ = reserved();
    std::string came_ = reserved();

    static std::string reserved() {
        std::string text;
        text.reserve(200'000);
        return text;
    }
};
TEST_P(tls_faults_test, both_directions_with_repeated_operations) {
    fail_everywhere<enduring>();
}

/// TLS whose transport may lack memory, too.
class enduring_inside : public enduring {
    task<result<std::string>> play() override {
        auto outer = co_await or_return(co_await connect());
        tls::stream<tls_tcp> client{std::move(outer.client), client_, {.server_name = "localhost"}};
        tls::stream<tls_tcp> server{std::move(outer.server), server_};
        co_return co_await exchange(client, server);
    }
};
TEST_P(tls_faults_test, tls_inside_tls) {
    fail_everywhere<enduring_inside>();
}

INSTANTIATE_TEST_SUITE_P(backends, tls_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
