// What a client accepts as the certificate of its server, and a server as that of its client.

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"

#include <simplenet/tls/errc.hpp>

#include <string>

namespace simplenet::v0 {
namespace {

using testing::certificate;
using testing::client;
using testing::client_with;
using testing::connected;
using testing::server_with;
using testing::shake_hands;

class tls_verification_test : public testing::backend_test {
protected:
    /// What the standard client says about a server with this certificate.
    std::error_code verdict_on(const tls::context& server, const tls::context& by,
                               tls::stream_options options = {.server_name = "localhost"}) {
        std::error_code verdict;
        run([&]() -> task<> {
            auto ends = connected(server, by, options);
            verdict = (co_await shake_hands(ends)).client;
            if (verdict) co_return;
            EXPECT_TRUE(co_await async_write_all(ends.client, "x"));
        });
        return verdict;
    }
    std::error_code verdict_on(const std::string& name,
                               tls::stream_options options = {.server_name = "localhost"}) {
        // Otherwise the server would not load weak certificates.
        const auto server = server_with(
            name, [](tls::server_config& config) { config.ciphers = "ECDHE@SECLEVEL=0"; });
        return verdict_on(server, client(), options);
    }
};

TEST_P(tls_verification_test, a_certificate_of_a_trusted_authority_is_accepted) {
    EXPECT_EQ(verdict_on("server"), std::error_code{});
    EXPECT_EQ(verdict_on("server_rsa"), std::error_code{});
    EXPECT_EQ(verdict_on("long_chain"), std::error_code{});
}

TEST_P(tls_verification_test, each_defect_of_a_certificate_has_its_error) {
    EXPECT_EQ(verdict_on("expired"), tls::errc::certificate_expired);
    EXPECT_EQ(verdict_on("future"), tls::errc::certificate_not_yet_valid);
    EXPECT_EQ(verdict_on("self_signed"), tls::errc::certificate_self_signed);
    EXPECT_EQ(verdict_on("unknown_issuer"), tls::errc::certificate_untrusted_issuer);
    EXPECT_EQ(verdict_on("no_server"), tls::errc::certificate_purpose);
    EXPECT_EQ(verdict_on("weak_key"), tls::errc::certificate_weak);
    EXPECT_EQ(verdict_on("weak_signature"), tls::errc::certificate_weak);
}

TEST_P(tls_verification_test, the_name_must_be_one_of_the_alternative_names) {
    EXPECT_EQ(verdict_on("other_host"), tls::errc::certificate_host_mismatch);
    EXPECT_EQ(verdict_on("nameless", {.server_name = "nameless"}),
              tls::errc::certificate_host_mismatch); // only its common name
    EXPECT_EQ(verdict_on("server", {.server_name = "LOCALHOST"}), std::error_code{});
    EXPECT_EQ(verdict_on("server", {.server_name = "localhost."}), std::error_code{});
    EXPECT_EQ(verdict_on("other_host", {.server_name = "localhost", .verify_name = false}),
              std::error_code{});
}

TEST_P(tls_verification_test, a_wildcard_stands_for_one_whole_label) {
    EXPECT_EQ(verdict_on("wildcard", {.server_name = "www.example.org"}), std::error_code{});
    for (const char* name : {"example.org", "a.www.example.org", "www.example.com"}) {
        EXPECT_EQ(verdict_on("wildcard", {.server_name = name}),
                  tls::errc::certificate_host_mismatch)
            << name;
    }
    EXPECT_EQ(verdict_on("partial_wildcard", {.server_name = "www.example.org"}),
              tls::errc::certificate_host_mismatch);
}

TEST_P(tls_verification_test, an_address_must_be_an_alternative_name_of_its_own_kind) {
    EXPECT_EQ(verdict_on("server", {.server_name = "127.0.0.1"}), std::error_code{});
    EXPECT_EQ(verdict_on("server", {.server_name = "::1"}), std::error_code{});
    EXPECT_EQ(verdict_on("server", {.server_name = "127.0.0.2"}),
              tls::errc::certificate_host_mismatch);
    EXPECT_EQ(verdict_on("address_as_name", {.server_name = "127.0.0.1"}),
              tls::errc::certificate_host_mismatch);
}

TEST_P(tls_verification_test, a_chain_may_not_be_longer_than_the_limit) {
    const auto by = client_with([](tls::client_config& config) { config.max_chain_depth = 2; });
    EXPECT_EQ(verdict_on(server_with("long_chain"), by), tls::errc::certificate_chain_too_long);
    EXPECT_EQ(verdict_on(server_with("server"), by), std::error_code{});
}

TEST_P(tls_verification_test, a_revoked_certificate_is_refused) {
    const std::string list = certificate("root.crl");
    const auto by = client_with([&](tls::client_config& config) { config.crl_file = list; });
    EXPECT_EQ(verdict_on(server_with("revoked"), by), tls::errc::certificate_revoked);
    EXPECT_EQ(verdict_on(server_with("server"), by), std::error_code{});
    EXPECT_EQ(verdict_on(server_with("revoked"), client()), std::error_code{});
    // Nobody vouches for the issuers in between.
    EXPECT_EQ(verdict_on(server_with("long_chain"), by), tls::errc::certificate_revocation_unknown);
}

TEST_P(tls_verification_test, the_systems_store_does_not_know_the_tests_authority) {
    const auto by = or_throw(tls::context::client());
    EXPECT_EQ(verdict_on(server_with("server"), by), tls::errc::certificate_untrusted_issuer);
}

TEST_P(tls_verification_test, a_client_that_verifies_needs_a_name) {
    EXPECT_EQ(verdict_on("server", {}), tls::errc::bad_configuration);
    EXPECT_EQ(verdict_on("server", {.verify_name = false}), std::error_code{});
    using namespace std::string_view_literals;
    for (const std::string_view name :
         {"localhost\0.example"sv, ".example.org"sv, "*.example.org"sv, "a..b"sv, "a b"sv, "."sv}) {
        EXPECT_EQ(verdict_on("wildcard", {.server_name = name}), tls::errc::bad_configuration)
            << name;
    }
}

// --- without verification, and with a function ---------------------------------------------------

TEST_P(tls_verification_test, without_verification_everything_is_accepted_and_reported) {
    const auto by = client_with([](tls::client_config& config) { config.verify = false; });
    run([&]() -> task<> {
        auto ends = connected(server_with("expired"), by);
        EXPECT_FALSE((co_await shake_hands(ends)).client);
        EXPECT_EQ(ends.client.info().verification, tls::errc::certificate_expired);
        auto misnamed = connected(server_with("other_host"), by);
        EXPECT_FALSE((co_await shake_hands(misnamed)).client);
        EXPECT_EQ(misnamed.client.info().verification, tls::errc::certificate_host_mismatch);
    });
}

struct verdicts {
    bool answer = true;
    int asked = 0;
    std::error_code found;
    std::string subject;
};

bool decide(const tls::peer_certificate& peer, std::error_code found, void* data) {
    auto& all = *static_cast<verdicts*>(data);
    ++all.asked;
    all.found = found;
    all.subject = peer.subject();
    return all.answer;
}

TEST_P(tls_verification_test, a_function_may_refuse_what_was_verified) {
    verdicts all;
    const auto by = client_with([&](tls::client_config& config) {
        config.verify_peer = decide;
        config.verify_data = &all;
    });

    EXPECT_EQ(verdict_on(server_with("server"), by), std::error_code{});
    EXPECT_EQ(all.asked, 1);
    EXPECT_EQ(all.found, std::error_code{});
    EXPECT_EQ(all.subject, "CN=server");

    EXPECT_EQ(verdict_on(server_with("expired"), by), tls::errc::certificate_expired);
    EXPECT_EQ(all.asked, 1); // may only refuse

    all.answer = false;
    EXPECT_EQ(verdict_on(server_with("server"), by), tls::errc::certificate_invalid);
}

TEST_P(tls_verification_test, without_verification_a_function_decides_alone) {
    verdicts all;
    const auto by = client_with([&](tls::client_config& config) {
        config.verify = false;
        config.verify_peer = decide;
        config.verify_data = &all;
    });

    EXPECT_EQ(verdict_on(server_with("expired"), by), std::error_code{});
    EXPECT_EQ(all.found, tls::errc::certificate_expired);

    // A refusal is one error. It used to be what the chain said.
    all.answer = false;
    EXPECT_EQ(verdict_on(server_with("expired"), by), tls::errc::certificate_invalid);
    EXPECT_EQ(all.found, tls::errc::certificate_expired);
    EXPECT_EQ(verdict_on(server_with("server"), by), tls::errc::certificate_invalid);
}

// --- clients -------------------------------------------------------------------------------------

class tls_client_certificate_test : public testing::backend_test {
protected:
    /// What a server that asks says about a client with this certificate; empty: without one.
    std::error_code verdict_on(const std::string& name, tls::client_certificate ask) {
        const std::string root = certificate("root.pem");
        const std::string list = certificate("root.crl");
        const auto server = server_with("server", [&](tls::server_config& config) {
            config.ask = ask;
            config.client_ca_file = root;
            config.client_crl_file = list;
        });
        const std::string chain = certificate(name + ".pem");
        const std::string key = certificate(name + ".key");
        const auto by = client_with([&](tls::client_config& config) {
            if (name.empty()) return;
            config.certificate_chain_file = chain;
            config.private_key_file = key;
        });
        std::error_code verdict;
        run([&]() -> task<> {
            auto ends = connected(server, by);
            verdict = (co_await shake_hands(ends)).server;
            if (verdict) co_return;
            subject = ends.server.info().peer_certificate
                          ? ends.server.info().peer_certificate->subject()
                          : "";
        });
        return verdict;
    }

    std::string subject;
};

TEST_P(tls_client_certificate_test, a_valid_one_is_accepted) {
    EXPECT_EQ(verdict_on("client", tls::client_certificate::required), std::error_code{});
    EXPECT_EQ(subject, "CN=client");
}

TEST_P(tls_client_certificate_test, none_is_accepted_only_where_it_is_optional) {
    EXPECT_EQ(verdict_on("", tls::client_certificate::optional), std::error_code{});
    EXPECT_EQ(subject, "");
    EXPECT_EQ(verdict_on("", tls::client_certificate::required), tls::errc::certificate_required);
}

TEST_P(tls_client_certificate_test, an_invalid_one_is_refused_even_where_it_is_optional) {
    const auto optional = tls::client_certificate::optional;
    EXPECT_EQ(verdict_on("server", optional), tls::errc::certificate_purpose);
    EXPECT_EQ(verdict_on("unknown_issuer", optional), tls::errc::certificate_untrusted_issuer);
    EXPECT_EQ(verdict_on("revoked", optional), tls::errc::certificate_revoked);
    EXPECT_EQ(verdict_on("self_signed", optional), tls::errc::certificate_self_signed);
}

INSTANTIATE_TEST_SUITE_P(backends, tls_verification_test, testing::all_backends,
                         testing::backend_name);
INSTANTIATE_TEST_SUITE_P(backends, tls_client_certificate_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
