// OpenSSL's global configuration file does not apply to contexts: a file that would break them.

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

namespace simplenet::v0 {
namespace {

using testing::certificate;
using testing::client_with;
using testing::server_with;

// Before OpenSSL looks for it. The standard context then has no cipher and no digest, and
// connections would speak TLS 1.2 only, without tickets.
const bool configured = [] {
    const std::string path = certificate("hostile.cnf");
    std::ofstream{path} << "openssl_conf = all\n"
                           "[all]\n"
                           "providers = some\n"
                           "ssl_conf = tls\n"
                           "[some]\n"
                           "base = base\n"
                           "[base]\n"
                           "activate = 1\n"
                           "[tls]\n"
                           "system_default = standard\n"
                           "[standard]\n"
                           "MaxProtocol = TLSv1.2\n"
                           "CipherString = AES128-SHA\n"
                           "Groups = P-521\n"
                           "Options = -SessionTicket\n";
    return ::setenv("OPENSSL_CONF", path.c_str(), 1) == 0;
}();

class tls_configuration_test : public testing::backend_test {};

// Tickets and revocation lists used ciphers and digests of the standard context.
TEST_P(tls_configuration_test, the_configuration_file_of_openssl_does_not_apply) {
    ASSERT_TRUE(configured);
    const std::string crl = certificate("root.crl");
    const auto server = server_with();
    const auto client = client_with([&](tls::client_config& config) { config.crl_file = crl; });

    run([&]() -> task<> {
        for (const bool resumes : {false, true}) {
            auto ends = testing::connected(server, client);
            const auto errors = co_await testing::shake_hands(ends);
            EXPECT_FALSE(errors.server) << errors.server.message();
            EXPECT_FALSE(errors.client) << errors.client.message();
            if (errors.client) co_return;
            co_await testing::exchange(ends.server, ends.client, testing::pattern(1000));
            EXPECT_EQ(ends.client.info().version, tls::version::tls_1_3);
            EXPECT_EQ(ends.client.info().resumed, resumes);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tls_configuration_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
