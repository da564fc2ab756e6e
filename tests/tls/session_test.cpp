// Resumption: who may resume what, and for how long.

#include <simplenet/tls/session_cache.hpp>

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/split.hpp>

#include <array>
#include <string>

namespace simplenet::v0 {
namespace {

using testing::certificate;
using testing::client_with;
using testing::connected;
using testing::read_all;
using testing::server_with;
using testing::shake_hands;
using testing::tls_ends;

class tls_session_test : public testing::backend_test {
protected:
    /// Whether a connection resumes an earlier one. Both sides end it in order.
    bool resumes(const tls::context& server, const tls::context& by,
                 tls::stream_options options = {.server_name = "localhost"}) {
        bool resumed = false;
        run([&]() -> task<> {
            auto ends = connected(server, by, options);
            const auto errors = co_await shake_hands(ends);
            EXPECT_FALSE(errors.client) << errors.client.message();
            EXPECT_FALSE(errors.server) << errors.server.message();
            if (errors.client || errors.server) co_return;
            EXPECT_TRUE(co_await async_write_all(ends.server, "x"));
            EXPECT_TRUE(co_await async_shutdown_write(ends.server));
            std::error_code end;
            EXPECT_EQ(co_await read_all(ends.client, end), "x");
            EXPECT_EQ(ends.client.info().resumed, ends.server.info().resumed);
            resumed = ends.client.info().resumed;
        });
        return resumed;
    }
    static tls::context client() {
        return client_with([](tls::client_config&) {});
    }

    testing::temporary_directory own_;
};

TEST_P(tls_session_test, a_second_connection_resumes_and_the_next_ones_too) {
    const auto server = server_with();
    const auto by = client();
    EXPECT_FALSE(resumes(server, by));
    for (int each = 0; each < 5; ++each)
        EXPECT_TRUE(resumes(server, by)) << each;
}

TEST_P(tls_session_test, the_peers_certificate_is_known_in_a_resumed_connection) {
    const auto server = server_with();
    const auto by = client();
    EXPECT_FALSE(resumes(server, by));
    run([&]() -> task<> {
        auto ends = connected(server, by);
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_TRUE(ends.client.info().resumed);
        EXPECT_EQ(ends.client.info().peer_certificate->subject(), "CN=server");
    });
}

TEST_P(tls_session_test, another_name_or_another_trust_does_not_resume) {
    tls::session_cache cache;
    const auto with_cache = [&](auto change) {
        return client_with([&](tls::client_config& config) {
            config.sessions = &cache;
            change(config);
        });
    };
    const auto server = server_with();
    const auto standard = with_cache([](tls::client_config&) {});
    EXPECT_FALSE(resumes(server, standard));
    EXPECT_GT(cache.size(), 0U);

    EXPECT_FALSE(resumes(server, standard, {.server_name = "127.0.0.1"}));
    EXPECT_FALSE(resumes(server, standard, {.server_name = "localhost", .verify_name = false}));

    const std::string root = certificate("root.pem");
    const std::string stranger = certificate("stranger.pem");
    const std::string both = testing::content(root) + testing::content(stranger);
    EXPECT_FALSE(resumes(server, with_cache([&](tls::client_config& config) {
                             config.ca_file = {};
                             config.ca_pem = both;
                         })));
    EXPECT_FALSE(
        resumes(server, with_cache([](tls::client_config& config) { config.verify = false; })));
    const std::array<std::string_view, 1> protocols{"h2"};
    EXPECT_FALSE(
        resumes(server, with_cache([&](tls::client_config& config) { config.alpn = protocols; })));
    const std::string chain = certificate("client.pem");
    const std::string key = certificate("client.key");
    EXPECT_FALSE(resumes(server, with_cache([&](tls::client_config& config) {
                             config.certificate_chain_file = chain;
                             config.private_key_file = key;
                         })));

    // Contexts that are the same share what they have.
    EXPECT_TRUE(resumes(server, with_cache([](tls::client_config&) {})));
}

TEST_P(tls_session_test, another_context_of_the_server_does_not_know_the_ticket) {
    const auto by = client();
    EXPECT_FALSE(resumes(server_with(), by));
    EXPECT_FALSE(resumes(server_with(), by));
}

TEST_P(tls_session_test, a_server_without_tickets_gives_none) {
    const auto server =
        server_with("server", [](tls::server_config& config) { config.session_tickets = false; });
    tls::session_cache cache;
    const auto by = client_with([&](tls::client_config& config) { config.sessions = &cache; });
    EXPECT_FALSE(resumes(server, by));
    EXPECT_FALSE(resumes(server, by));
    EXPECT_EQ(cache.size(), 0U);
}

TEST_P(tls_session_test, a_ticket_is_bound_to_the_certificate_that_was_chosen) {
    const std::string chain = certificate("one.pem");
    const std::string key = certificate("one.key");
    const std::string other_chain = certificate("two.pem");
    const std::string other_key = certificate("two.key");
    const std::array<tls::certificate_files, 2> more{
        tls::certificate_files{.chain_file = chain, .key_file = key},
        tls::certificate_files{.chain_file = other_chain, .key_file = other_key}};
    const auto server =
        server_with("server", [&](tls::server_config& config) { config.more_certificates = more; });
    // One session for all names, as an attacker would use it.
    tls::session_cache cache;
    const auto by = client_with([&](tls::client_config& config) { config.sessions = &cache; });
    EXPECT_FALSE(resumes(server, by, {.server_name = "one.example"}));
    EXPECT_TRUE(resumes(server, by, {.server_name = "one.example"}));
    EXPECT_FALSE(resumes(server, by, {.server_name = "two.example"}));
}

TEST_P(tls_session_test, a_function_that_verifies_is_asked_for_resumed_connections_too) {
    static int asked;
    static bool answer;
    asked = 0;
    answer = true;
    const auto by = client_with([&](tls::client_config& config) {
        config.verify_peer = [](const tls::peer_certificate& peer, std::error_code, void*) {
            ++asked;
            EXPECT_EQ(peer.subject(), "CN=server");
            return answer;
        };
    });
    const auto server = server_with();
    EXPECT_FALSE(resumes(server, by));
    EXPECT_TRUE(resumes(server, by));
    EXPECT_EQ(asked, 2);

    answer = false;
    run([&]() -> task<> {
        auto ends = connected(server, by);
        const auto errors = co_await shake_hands(ends);
        EXPECT_EQ(errors.client, tls::errc::certificate_invalid);
        EXPECT_EQ(errors.server, tls::errc::truncated); // used to be complete
        EXPECT_EQ(ends.client.error_detail(), "client_config::verify_peer refused");
    });
    EXPECT_EQ(asked, 3);
}

TEST_P(tls_session_test, a_refused_resumption_stays_refused) {
    static bool answer;
    answer = true;
    const auto by = client_with([&](tls::client_config& config) {
        config.verify_peer = [](const tls::peer_certificate&, std::error_code, void*) {
            return answer;
        };
    });
    const auto server = server_with();
    EXPECT_FALSE(resumes(server, by));
    answer = false;
    run([&]() -> task<> {
        auto ends = connected(server, by);
        auto serving = spawn([](testing::memory_stream& end) -> task<result<>> {
            co_return co_await end.handshake();
        }(ends.server));
        EXPECT_EQ((co_await ends.client.handshake()).error(), tls::errc::certificate_invalid);
        answer = true;
        EXPECT_EQ((co_await ends.client.handshake()).error(), tls::errc::certificate_invalid);
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await ends.client.read_some(buffer)).error(), tls::errc::certificate_invalid);
        EXPECT_EQ((co_await ends.client.write_some("x")).error(), tls::errc::certificate_invalid);
        ends.client.close();
        EXPECT_EQ((co_await serving).error(), tls::errc::truncated);
    });
}

TEST_P(tls_session_test, a_function_refuses_a_resumed_connection_with_the_same_error) {
    static bool answer;
    static std::error_code found;
    const auto by = client_with([&](tls::client_config& config) {
        config.verify = false;
        config.verify_peer = [](const tls::peer_certificate&, std::error_code what, void*) {
            found = what;
            return answer;
        };
    });
    const auto server = server_with("expired");
    answer = true;
    EXPECT_FALSE(resumes(server, by));
    EXPECT_TRUE(resumes(server, by));

    answer = false;
    found = {};
    run([&]() -> task<> {
        auto ends = connected(server, by);
        EXPECT_EQ((co_await shake_hands(ends)).client, tls::errc::certificate_invalid);
        EXPECT_EQ(found, tls::errc::certificate_expired);
    });
}

TEST_P(tls_session_test, a_ticket_is_bound_to_the_certificate_under_a_name) {
    const std::string chain = own_ / "certificate.pem";
    const std::string key = own_ / "certificate.key";
    const auto write = [&](const std::string& name) {
        std::ofstream{chain} << testing::content(certificate(name + ".pem"));
        std::ofstream{key} << testing::content(certificate(name + ".key"));
    };
    write("server");
    auto server = server_with("server", [&](tls::server_config& config) {
        config.certificate_chain_file = chain;
        config.private_key_file = key;
    });
    const auto by = client();
    EXPECT_FALSE(resumes(server, by));
    EXPECT_TRUE(server.reload());
    EXPECT_TRUE(resumes(server, by));
    write("server_rsa");
    EXPECT_TRUE(server.reload());
    EXPECT_FALSE(resumes(server, by));
    EXPECT_TRUE(resumes(server, by));
}

TEST_P(tls_session_test, a_ticket_is_used_once) {
    tls::session_cache cache;
    const auto by = client_with([&](tls::client_config& config) { config.sessions = &cache; });
    const auto server = server_with();
    EXPECT_FALSE(resumes(server, by));
    ASSERT_EQ(cache.size(), 2U); // the tickets of one handshake
    run([&]() -> task<> {
        auto first = connected(server, by);
        auto second = connected(server, by);
        auto third = connected(server, by);
        EXPECT_EQ(cache.size(), 0U);
        for (tls_ends* each : {&first, &second, &third}) {
            const auto errors = co_await shake_hands(*each);
            EXPECT_FALSE(errors.client || errors.server);
        }
        EXPECT_TRUE(first.client.info().resumed);
        EXPECT_TRUE(second.client.info().resumed);
        EXPECT_FALSE(third.client.info().resumed);
    });
}

TEST_P(tls_session_test, a_reload_with_another_client_authority_invalidates_tickets) {
    const std::string authorities = own_ / "authorities.pem";
    const auto write = [&](const char* name) {
        std::ofstream{authorities} << testing::content(certificate(name));
    };
    write("root.pem");
    auto server = server_with("server", [&](tls::server_config& config) {
        config.ask = tls::client_certificate::optional;
        config.client_ca_file = authorities;
    });
    const auto by = client();
    EXPECT_FALSE(resumes(server, by));
    EXPECT_TRUE(server.reload());
    EXPECT_TRUE(resumes(server, by));

    write("stranger.pem");
    EXPECT_TRUE(server.reload());
    EXPECT_FALSE(resumes(server, by));
    EXPECT_TRUE(resumes(server, by));
}

TEST_P(tls_session_test, the_cache_keeps_as_many_as_it_may) {
    tls::session_cache cache{3};
    const auto by = client_with([&](tls::client_config& config) { config.sessions = &cache; });
    const auto server = server_with();
    for (int each = 0; each < 4; ++each)
        static_cast<void>(resumes(server, by));
    EXPECT_LE(cache.size(), 3U);
    EXPECT_GT(cache.size(), 0U);
    cache.clear();
    EXPECT_EQ(cache.size(), 0U);
    EXPECT_FALSE(resumes(server, by));
}

INSTANTIATE_TEST_SUITE_P(backends, tls_session_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
