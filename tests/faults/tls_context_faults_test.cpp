// Faults in every call, and in every allocation of ours and of OpenSSL, while contexts of TLS are
// made and read their files again. No play touches the loop, so one backend is enough.

#include "faults/tls_faults.hpp"

#include "tls/tls_pair.hpp"

#include "support/fail_everywhere.hpp"

#include <simplenet/tls.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using testing::backend_name;
using testing::certificate;
using testing::client_with;
using testing::content;
using testing::exempt_allocations;
using testing::exempts_openssl;
using testing::fault_scenario;
using testing::memory_stream;
using testing::server_with;

class tls_context_faults_test : public testing::tls_faults_test {};

// --- contexts ------------------------------------------------------------------------------------

task<std::string> outcome_of(memory_stream& end) {
    const auto made = co_await testing::handshake_or_close(end);
    if (!made) co_return made.error().message();
    const auto& peer = end.info().peer_certificate;
    co_return (peer ? peer->subject() : "nobody") + ' ' + end.info().alpn;
}
/// Each side on how a handshake in memory has ended.
task<std::string> outcome_of(const tls::context& server, const tls::context& client,
                             std::string_view name) {
    auto ends = testing::connected(server, client, {.server_name = name});
    const auto [at_server, at_client] =
        co_await when_all(outcome_of(ends.server), outcome_of(ends.client));
    co_return at_server + ", " + at_client + '\n';
}

tls::context client_that_is_revoked() {
    const std::string revocations = certificate("root.crl");
    const std::string chain = certificate("revoked.pem");
    const std::string key = certificate("revoked.key");
    return client_with([&](tls::client_config& config) {
        config.crl_file = revocations;
        config.certificate_chain_file = chain;
        config.private_key_file = key;
    });
}

/// Whether two contexts choose certificates by name, and refuse revoked ones.
class inspecting : public fault_scenario {
protected:
    /// Takes its time, unlike what fails. @pre Nothing fails any more.
    static auto inspect(const tls::context& server, const tls::context& client) {
        return shield(look_at(server, client));
    }

private:
    static task<std::string> look_at(const tls::context& server, const tls::context& client) {
        std::string all = co_await outcome_of(server, client, "localhost");
        all += co_await outcome_of(server, client, "www.one.example");
        all += co_await outcome_of(revoked_server(), client, "localhost");
        all += co_await outcome_of(server, revoked_client(), "localhost");
        co_return shortened(all);
    }

    // A result has a limited length.
    static std::string shortened(std::string_view text) {
        return std::to_string(std::hash<std::string_view>{}(text));
    }
    static const tls::context& revoked_server() {
        static const tls::context made = server_with("revoked");
        return made;
    }
    static const tls::context& revoked_client() {
        static const tls::context made = client_that_is_revoked();
        return made;
    }
};

/// Every kind of file and text.
class making_contexts : public inspecting {
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
        const exempt_allocations inspection;
        co_return co_await inspect(server, client);
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
TEST_P(tls_context_faults_test, contexts) {
    fail_everywhere<making_contexts>();
}

/// Few enough allocations that the short form tries each.
class reading_trust : public fault_scenario {
    task<result<std::string>> play() override {
        co_await or_return(
            tls::context::client({.ca_pem = authorities_, .crl_file = revocations_}));
        co_return "made";
    }
    const std::string authorities_ = content(certificate("root.pem"));
    const std::string revocations_ = certificate("root.crl");
};
// Certificates and revocation lists that had been read used to leak.
TEST_P(tls_context_faults_test, trust_by_the_allocations_of_the_library_alone) {
    exempts_openssl = true;
    fail_everywhere<reading_trust>();
}

class reading_an_identity : public fault_scenario {
    task<result<std::string>> play() override {
        co_await or_return(
            tls::context::server({.certificate_chain_pem = chain_, .private_key_pem = key_}));
        co_return "made";
    }
    const std::string chain_ = content(certificate("server.pem"));
    const std::string key_ = content(certificate("server.key"));
};
// The certificate in DER used to leak.
TEST_P(tls_context_faults_test, an_identity_by_the_allocations_of_the_library_alone) {
    exempts_openssl = true;
    fail_everywhere<reading_an_identity>();
}

/// Whether it succeeds or fails, they choose and refuse as before.
class reloading : public inspecting {
    static std::string try_to_reload(tls::context& which) {
        try {
            const result<> made = which.reload();
            if (made || made.error() == std::errc::not_enough_memory) return {};
            return made.error().message();
        } catch (const std::bad_alloc&) {
            return {};
        }
    }
    task<result<std::string>> play() override {
        const std::string unexpected = try_to_reload(server_) + try_to_reload(client_);
        const exempt_allocations inspection;
        co_return unexpected + co_await inspect(server_, client_);
    }

    static tls::context several_names() {
        const std::string one = certificate("one.pem");
        const std::string one_key = certificate("one.key");
        const std::string root = certificate("root.pem");
        const std::string revocations = certificate("root.crl");
        const std::array<tls::certificate_files, 1> more{
            tls::certificate_files{.chain_file = one, .key_file = one_key}};
        return server_with("server", [&](tls::server_config& config) {
            config.more_certificates = more;
            config.ask = tls::client_certificate::required;
            config.client_ca_file = root;
            config.client_crl_file = revocations;
        });
    }
    static tls::context named_and_checking() {
        const std::string chain = certificate("client.pem");
        const std::string key = certificate("client.key");
        const std::string revocations = certificate("root.crl");
        return client_with([&](tls::client_config& config) {
            config.certificate_chain_file = chain;
            config.private_key_file = key;
            config.crl_file = revocations;
        });
    }
    tls::context server_ = several_names();
    tls::context client_ = named_and_checking();
};
TEST_P(tls_context_faults_test, contexts_that_reload) {
    fail_everywhere<reloading>();
}

// --- the first use -------------------------------------------------------------------------------

std::string try_to_make_a_client(std::string_view authorities) {
    try {
        const auto made = tls::context::client({.ca_pem = authorities});
        return made ? "made" : made.error().message();
    } catch (const std::bad_alloc&) {
        return "memory";
    }
}

constexpr int recovers = 0;
constexpr int stays_broken = 1;
constexpr int no_fault = 2; // fewer allocations were made

/// A process whose first context of TLS lacks memory, and which then makes others.
[[noreturn]] void use_twice(std::size_t index, bool lasts) {
    const std::string authorities = content(certificate("root.pem"));
    // OpenSSL makes these once in a process, and never again after a failure.
    OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
    static_cast<void>(OSSL_LIB_CTX_get0_global_default());
    SSL_get_ex_data_X509_STORE_CTX_idx();

    std::string first;
    std::size_t count = 0;
    {
        const testing::failing_allocations failing{index, lasts};
        first = try_to_make_a_client(authorities);
        count = testing::failing_allocations::seen();
    }
    bool spoke = false;
    auto speak = [&]() -> task<> {
        auto ends = testing::connected(server_with(), testing::client());
        const auto errors = co_await testing::shake_hands(ends);
        spoke = !errors.server && !errors.client;
    };
    simplenet::run(speak());
    std::fprintf(stderr, "first: %s; later: %s\n", first.c_str(), spoke ? "works" : "fails");
    // Without a search for leaks: a fault may leave OpenSSL with some.
    ::_exit(!spoke ? stays_broken : index < count ? recovers : no_fault);
}

// What OpenSSL had not been able to make used to be missing in all later contexts.
TEST(tls_first_use_test, contexts_work_after_the_first_one_lacked_memory) {
    GTEST_FLAG_SET(death_test_style, "threadsafe"); // a new process each time
    // The short form begins with two places at which OpenSSL 3.0 used to stay broken.
    const std::size_t first = testing::short_or_full<std::size_t>(154, 0);
    const std::size_t step = testing::short_or_full<std::size_t>(952, 7);
    for (const bool lasts : {false, true}) {
        bool goes_on = true;
        for (std::size_t at = first; goes_on; at += step) {
            const auto as_promised = [&](int status) {
                goes_on = !WIFEXITED(status) || WEXITSTATUS(status) != no_fault;
                return WIFEXITED(status) && WEXITSTATUS(status) != stays_broken;
            };
            EXPECT_EXIT(use_twice(at, lasts), as_promised, "works")
                << at << (lasts ? " lasts" : "");
            ASSERT_LT(at, 100'000U);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(one_backend, tls_context_faults_test, ::testing::Values(backend::epoll),
                         backend_name);

} // namespace
} // namespace simplenet::v0
