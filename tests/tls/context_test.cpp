#include <simplenet/tls/context.hpp>

#include "tls/raw_tls.hpp"
#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/tls/errc.hpp>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using testing::certificate;
using testing::client;
using testing::client_with;
using testing::connected;
using testing::content;
using testing::server_with;
using testing::shake_hands;

std::error_code server_error(const tls::server_config& config, std::string* detail = nullptr) {
    const auto made = tls::context::server(config, detail);
    return made ? std::error_code{} : made.error();
}
std::error_code client_error(const tls::client_config& config, std::string* detail = nullptr) {
    const auto made = tls::context::client(config, detail);
    return made ? std::error_code{} : made.error();
}

// --- configurations that cannot be used ----------------------------------------------------------

TEST(tls_context_test, a_server_needs_exactly_one_chain_and_one_key) {
    const std::string chain = certificate("server.pem");
    const std::string key = certificate("server.key");
    const std::string chain_pem = content(chain);
    const std::string key_pem = content(key);

    EXPECT_EQ(server_error({}), tls::errc::bad_configuration);
    EXPECT_EQ(server_error({.certificate_chain_file = chain}), tls::errc::bad_configuration);
    EXPECT_EQ(server_error({.private_key_file = key}), tls::errc::bad_configuration);
    EXPECT_EQ(server_error({.certificate_chain_file = chain,
                            .private_key_file = key,
                            .certificate_chain_pem = chain_pem}),
              tls::errc::bad_configuration);

    EXPECT_EQ(server_error({.certificate_chain_file = chain, .private_key_file = key}),
              std::error_code{});
    EXPECT_EQ(server_error({.certificate_chain_pem = chain_pem, .private_key_pem = key_pem}),
              std::error_code{});
    EXPECT_EQ(server_error({.private_key_file = key, .certificate_chain_pem = chain_pem}),
              std::error_code{});
    EXPECT_EQ(tls::errc::bad_configuration, server_error({}));
    EXPECT_EQ(server_error({}), std::errc::invalid_argument);
}

TEST(tls_context_test, the_detail_names_the_file_and_the_reason) {
    const std::string missing = certificate("missing.pem");
    const std::string garbage = certificate("garbage.pem");
    const std::string chain = certificate("server.pem");
    const std::string key = certificate("server.key");
    const std::string other_key = certificate("client.key");
    std::string detail;

    EXPECT_EQ(server_error({.certificate_chain_file = missing, .private_key_file = key}, &detail),
              std::errc::no_such_file_or_directory);
    EXPECT_NE(detail.find(missing), std::string::npos) << detail;

    EXPECT_EQ(server_error({.certificate_chain_file = garbage, .private_key_file = key}, &detail),
              tls::errc::bad_configuration);
    EXPECT_NE(detail.find(garbage), std::string::npos) << detail;

    EXPECT_EQ(server_error({.certificate_chain_file = chain, .private_key_file = chain}, &detail),
              tls::errc::bad_configuration);
    EXPECT_NE(detail.find("no private key"), std::string::npos) << detail;

    EXPECT_EQ(
        server_error({.certificate_chain_file = chain, .private_key_file = other_key}, &detail),
        tls::errc::key_mismatch);
    EXPECT_NE(detail.find(chain), std::string::npos) << detail;

    EXPECT_EQ(server_error({.certificate_chain_file = chain,
                            .private_key_file = key,
                            .ask = tls::client_certificate::required},
                           &detail),
              tls::errc::bad_configuration);
    EXPECT_NE(detail.find("client_ca"), std::string::npos) << detail;
}

TEST(tls_context_test, lists_that_openssl_cannot_read_are_refused) {
    EXPECT_EQ(client_error({.ciphers = "NO-SUCH-CIPHER"}), tls::errc::bad_configuration);
    EXPECT_EQ(client_error({.cipher_suites = "NO_SUCH_SUITE"}), tls::errc::bad_configuration);
    EXPECT_EQ(client_error({.groups = "no-such-group"}), tls::errc::bad_configuration);
    const std::array<std::string_view, 2> protocols{"h2", ""};
    EXPECT_EQ(client_error({.alpn = protocols}), tls::errc::bad_configuration);
    const std::string missing = certificate("missing.pem");
    EXPECT_EQ(client_error({.ca_file = missing}), std::errc::no_such_file_or_directory);
    EXPECT_EQ(client_error({.ca_directory = missing}), std::errc::no_such_file_or_directory);
    EXPECT_EQ(client_error({.crl_file = missing}), std::errc::no_such_file_or_directory);
}

TEST(tls_context_test, an_encrypted_key_needs_its_password) {
    const std::string chain = certificate("server.pem");
    const std::string key = certificate("server_encrypted.key");
    tls::server_config config{.certificate_chain_file = chain, .private_key_file = key};
    std::string detail;
    EXPECT_EQ(server_error(config, &detail), tls::errc::bad_configuration); // nobody was asked
    EXPECT_NE(detail.find("server_encrypted.key: the private key needs a password"),
              std::string::npos)
        << detail;
    config.private_key_password = "wrong";
    EXPECT_EQ(server_error(config), tls::errc::bad_configuration);
    config.private_key_password = "secret";
    EXPECT_EQ(server_error(config), std::error_code{});
}

// Used to wait until somebody opens the other end.
TEST(tls_context_test, a_fifo_without_a_writer_is_empty) {
    const std::string fifo = certificate("fifo.pem");
    std::filesystem::remove(fifo);
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    std::string detail;
    EXPECT_EQ(client_error({.ca_file = fifo}, &detail), tls::errc::bad_configuration);
    EXPECT_NE(detail.find("no certificate"), std::string::npos) << detail;
}

TEST(tls_context_test, a_pipe_is_read_to_its_end) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const unique_fd reading{ends[0]};
    const std::string path = "/proc/self/fd/" + std::to_string(reading.get());
    std::jthread writing{[end = ends[1]] {
        const unique_fd owned{end};
        const std::string text = content(certificate("root.pem"));
        for (const char each : text)
            if (::write(end, &each, 1) != 1) return;
    }};
    EXPECT_EQ(client_error({.ca_file = path}), std::error_code{});
}

// Used to be stapled as it was.
TEST(tls_context_test, an_ocsp_response_is_checked) {
    const std::string chain = certificate("server.pem");
    const std::string key = certificate("server.key");
    const std::string garbage = certificate("garbage.pem");
    const std::string response = certificate("server.ocsp");
    const auto error_with = [&](std::string_view file, std::string* detail = nullptr) {
        return server_error(
            {.certificate_chain_file = chain, .private_key_file = key, .ocsp_response_file = file},
            detail);
    };
    std::string detail;
    EXPECT_EQ(error_with(garbage, &detail), tls::errc::bad_configuration);
    EXPECT_NE(detail.find(garbage), std::string::npos) << detail;
    EXPECT_EQ(error_with("/dev/null"), tls::errc::bad_configuration);
    EXPECT_EQ(error_with(response), std::error_code{});
}

// Used to keep the permissions of a file that was there already.
TEST(tls_context_test, a_key_log_is_closed_to_others) {
    namespace fs = std::filesystem;
    const std::string log = certificate("old_key.log");
    std::ofstream{log} << "# old\n";
    fs::permissions(log, fs::perms{0644});
    EXPECT_EQ(client_error({.key_log_file = log}), std::error_code{});
    EXPECT_EQ(fs::status(log).permissions(), fs::perms{0600});
}

// Used to wait for a reader; after the end of a reader a handshake raised SIGPIPE.
TEST(tls_context_test, a_key_log_is_no_fifo) {
    const std::string fifo = certificate("fifo.log");
    std::filesystem::remove(fifo);
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(client_error({.key_log_file = fifo}), std::errc::no_such_device_or_address);
    const unique_fd reader{::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    EXPECT_EQ(client_error({.key_log_file = fifo}), tls::errc::bad_configuration);
    EXPECT_EQ(client_error({.key_log_file = "/dev/null"}), std::error_code{});
}

// --- what they do --------------------------------------------------------------------------------

class tls_context_loop_test : public testing::backend_test {
protected:
    /// The subject of the certificate that a client gets for `name`.
    std::string subject_for(const tls::context& server, const tls::context& by,
                            std::string_view name) {
        std::string subject;
        run([&]() -> task<> {
            auto ends = connected(server, by, {.server_name = name, .verify_name = false});
            const auto errors = co_await shake_hands(ends);
            EXPECT_FALSE(errors.client) << errors.client.message();
            if (!errors.client) subject = ends.client.info().peer_certificate->subject();
        });
        return subject;
    }

    /// The same for a client that sends any name.
    std::string subject_for_raw(const tls::context& server, std::string name) {
        std::string subject;
        run([&]() -> task<> {
            auto [left, right] = duplex(std::size_t{64} * 1024);
            testing::raw_tls by{std::move(left), testing::raw_side::client, TLS1_3_VERSION};
            testing::memory_stream end{std::move(right), server};
            // The macro for it casts const away.
            SSL_ctrl(by.ssl(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                     name.data());
            const auto [shaken, accepted] = co_await when_all(by.handshake(), end.handshake());
            EXPECT_TRUE(shaken && accepted);
            std::array<char, 256> text{};
            const X509* const certificate = SSL_get0_peer_certificate(by.ssl());
            if (certificate == nullptr) co_return;
            subject = X509_NAME_oneline(X509_get_subject_name(certificate), text.data(),
                                        static_cast<int>(text.size()));
        });
        return subject;
    }

    testing::temporary_directory own_;
};

TEST_P(tls_context_loop_test, the_name_chooses_the_certificate) {
    const std::string chain = certificate("one.pem");
    const std::string key = certificate("one.key");
    const std::string two_chain = content(certificate("two.pem"));
    const std::string two_key = content(certificate("two.key"));
    const std::array<tls::certificate_files, 2> more{
        tls::certificate_files{.chain_file = chain, .key_file = key},
        tls::certificate_files{.chain_pem = two_chain, .key_pem = two_key}};
    const auto server =
        server_with("server", [&](tls::server_config& config) { config.more_certificates = more; });

    EXPECT_EQ(subject_for(server, client(), "one.example"), "CN=one");
    EXPECT_EQ(subject_for(server, client(), "WWW.One.Example"), "CN=one");
    EXPECT_EQ(subject_for(server, client(), "a.b.one.example"), "CN=server");
    EXPECT_EQ(subject_for(server, client(), "two.example"), "CN=two");
    EXPECT_EQ(subject_for(server, client(), "three.example"), "CN=server");
    EXPECT_EQ(subject_for(server, client(), "127.0.0.1"), "CN=server"); // no SNI
}

// Used to get the first certificate. Our own clients send no such name.
TEST_P(tls_context_loop_test, a_dot_behind_the_name_does_not_change_the_certificate) {
    const std::string chain = certificate("one.pem");
    const std::string key = certificate("one.key");
    const std::array<tls::certificate_files, 1> more{
        tls::certificate_files{.chain_file = chain, .key_file = key}};
    const auto server =
        server_with("server", [&](tls::server_config& config) { config.more_certificates = more; });

    EXPECT_EQ(subject_for_raw(server, "one.example."), "/CN=one");
    EXPECT_EQ(subject_for_raw(server, "WWW.one.example."), "/CN=one");
    EXPECT_EQ(subject_for_raw(server, "one.example.."), "/CN=server");
    EXPECT_EQ(subject_for_raw(server, "."), "/CN=server");
}

TEST_P(tls_context_loop_test, certificates_with_keys_of_two_kinds_complete_each_other) {
    const std::string chain = certificate("server_rsa.pem");
    const std::string key = certificate("server_rsa.key");
    const std::array<tls::certificate_files, 1> more{
        tls::certificate_files{.chain_file = chain, .key_file = key}};
    const auto server =
        server_with("server", [&](tls::server_config& config) { config.more_certificates = more; });
    EXPECT_EQ(subject_for(server, client(), "localhost"), "CN=server");
}

TEST_P(tls_context_loop_test, reload_reads_the_files_again_and_keeps_the_old_on_failure) {
    namespace fs = std::filesystem;
    const std::string chain = own_ / "chain.pem";
    const std::string key = own_ / "key.pem";
    const auto install = [&](const std::string& name) {
        const auto replace = fs::copy_options::overwrite_existing;
        fs::copy_file(certificate(name + ".pem"), chain, replace);
        fs::copy_file(certificate(name + ".key"), key, replace);
    };
    install("one");
    auto server = server_with("server", [&](tls::server_config& config) {
        config.certificate_chain_file = chain;
        config.private_key_file = key;
    });
    EXPECT_EQ(subject_for(server, client(), "localhost"), "CN=one");

    install("two");
    EXPECT_EQ(subject_for(server, client(), "localhost"), "CN=one");
    EXPECT_TRUE(server.reload());
    EXPECT_EQ(subject_for(server, client(), "localhost"), "CN=two");

    fs::copy_file(certificate("garbage.pem"), chain, fs::copy_options::overwrite_existing);
    std::string detail;
    EXPECT_EQ(server.reload(&detail).error(), tls::errc::bad_configuration);
    EXPECT_NE(detail.find(chain), std::string::npos) << detail;
    EXPECT_EQ(subject_for(server, client(), "localhost"), "CN=two");
}

// Used to ignore the text beside a file.
TEST_P(tls_context_loop_test, authorities_of_a_file_and_of_a_text_are_trusted) {
    const std::string root = certificate("root.pem");
    const std::string stranger = content(certificate("stranger.pem"));
    const auto by = client_with([&](tls::client_config& config) { config.ca_pem = stranger; });
    EXPECT_EQ(subject_for(server_with(), by, "localhost"), "CN=server");
    EXPECT_EQ(subject_for(server_with("unknown_issuer"), by, "localhost"), "CN=unknown_issuer");

    const auto asking = server_with("server", [&](tls::server_config& config) {
        config.ask = tls::client_certificate::required;
        config.client_ca_file = root;
        config.client_ca_pem = stranger;
    });
    const std::string chain = certificate("client.pem");
    const std::string key = certificate("client.key");
    const auto known = client_with([&](tls::client_config& config) {
        config.certificate_chain_file = chain;
        config.private_key_file = key;
    });
    EXPECT_EQ(subject_for(asking, known, "localhost"), "CN=server");
}

TEST_P(tls_context_loop_test, a_directory_of_authorities_is_searched_by_hash) {
    namespace fs = std::filesystem;
    const std::string directory = own_ / "authorities";
    fs::create_directories(directory);
    fs::copy_file(certificate("root.pem"), directory + "/root.pem",
                  fs::copy_options::overwrite_existing);
    ASSERT_EQ(std::system(("openssl rehash " + directory).c_str()), 0);
    const auto by = client_with([&](tls::client_config& config) {
        config.ca_file = {};
        config.ca_directory = directory;
    });
    EXPECT_EQ(subject_for(server_with(), by, "localhost"), "CN=server");
}

TEST_P(tls_context_loop_test, secrets_are_logged_only_on_request_and_only_for_the_owner) {
    const std::string log = own_ / "key.log";
    const auto by = client_with([&](tls::client_config& config) { config.key_log_file = log; });
    EXPECT_EQ(subject_for(server_with(), by, "localhost"), "CN=server");
    EXPECT_NE(content(log).find("CLIENT_TRAFFIC_SECRET_0 "), std::string::npos);
    EXPECT_EQ(std::filesystem::status(log).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_P(tls_context_loop_test, the_environment_names_a_key_log_only_on_request) {
    const std::string log = own_ / "environment.log";
    ::setenv("SSLKEYLOGFILE", log.c_str(), 1);
    EXPECT_EQ(subject_for(server_with(), client(), "localhost"), "CN=server");
    EXPECT_FALSE(std::filesystem::exists(log));
    const auto by =
        client_with([](tls::client_config& config) { config.key_log_from_environment = true; });
    ::unsetenv("SSLKEYLOGFILE");
    EXPECT_EQ(subject_for(server_with(), by, "localhost"), "CN=server");
    EXPECT_NE(content(log).find("CLIENT_TRAFFIC_SECRET_0 "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(backends, tls_context_loop_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
