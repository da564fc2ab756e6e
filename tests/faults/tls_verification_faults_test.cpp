// Faults in every call, and in every allocation of ours and of OpenSSL, while peers of TLS verify
// the certificates of each other.

#include "faults/tls_faults.hpp"

#include "tls/tls_pair.hpp"

#include "support/fail_everywhere.hpp"

#include <simplenet/tls.hpp>

#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::certificate;
using testing::client_with;
using testing::server_with;
using testing::talking;
using testing::tls_tcp;

class tls_verification_faults_test : public testing::tls_faults_test {};

// --- certificates of both sides ------------------------------------------------------------------

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
TEST_P(tls_verification_faults_test, certificates_of_both_sides) {
    fail_everywhere<introducing_both>();
}

// --- who is refused ------------------------------------------------------------------------------

/// A connection that must not be made, whatever fails.
class being_refused : public talking {
protected:
    using talking::talking;

private:
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
TEST_P(tls_verification_faults_test, a_server_that_is_refused) {
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
TEST_P(tls_verification_faults_test, a_client_that_is_refused) {
    fail_everywhere<refusing_a_client>();
}

INSTANTIATE_TEST_SUITE_P(backends, tls_verification_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
