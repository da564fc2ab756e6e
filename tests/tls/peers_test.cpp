// Peers that follow the protocol to the letter and not in spirit, by OpenSSL itself.

#include "tls/raw_tls.hpp"
#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/errc.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace simplenet::v0 {
namespace {

using testing::certificate;
using testing::handshake_or_close;
using testing::memory_stream;
using testing::raw_side;
using testing::raw_tls;
using testing::read_all;
using testing::server_with;

struct raw_ends {
    raw_tls client;
    memory_stream server;
};
raw_ends raw_connected(int version, const tls::context& server = server_with(),
                       std::size_t capacity = std::size_t{1} << 20U) {
    auto [left, right] = duplex(capacity);
    return {raw_tls{std::move(left), raw_side::client, version},
            memory_stream{std::move(right), server}};
}

/// After the handshake.
task<raw_ends> raw_shaken(int version, std::size_t capacity = std::size_t{1} << 20U) {
    auto ends = raw_connected(version, server_with(), capacity);
    const auto [shaken, accepted] =
        co_await when_all(ends.client.handshake(), ends.server.handshake());
    EXPECT_TRUE(shaken && accepted);
    co_return ends;
}

void send(SSL* ssl, std::string_view text) {
    EXPECT_EQ(SSL_write(ssl, text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
}

/// Reads `size` bytes. False: the connection failed.
task<bool> read_exactly(raw_tls& from, std::size_t size, std::string& got) {
    got.assign(size, '\0');
    std::size_t there = 0;
    const auto read = [&](SSL* ssl) {
        std::size_t count = 0;
        while (SSL_read_ex(ssl, got.data() + there, size - there, &count) == 1) {
            there += count;
            if (there == size) return 1;
        }
        return -1;
    };
    co_return co_await from.until_done(read);
}

class tls_peers_test : public testing::backend_test {
protected:
    /// Completes a handshake, lets the client do `what`, and returns what the server then reads,
    /// and with which end.
    template <class What>
    std::pair<std::string, std::error_code> after(int version, What what) {
        std::pair<std::string, std::error_code> got;
        run([&]() -> task<> {
            auto ends = co_await raw_shaken(version);
            what(ends.client.ssl());
            EXPECT_TRUE(co_await ends.client.flush());
            ends.client.transport().close();
            got.first = co_await read_all(ends.server, got.second);
        });
        return got;
    }
    /// The server reads `count` records of one byte, before each of which the client does `what`.
    template <class What>
    void expect_bytes(std::size_t count, What what) {
        const auto [text, end] = after(TLS1_3_VERSION, [&](SSL* ssl) {
            for (std::size_t each = 0; each < count; ++each) {
                what(ssl);
                send(ssl, "x");
            }
            SSL_shutdown(ssl);
        });
        EXPECT_EQ(text, std::string(count, 'x'));
        EXPECT_EQ(end, errc::end_of_stream);
    }
};

TEST_P(tls_peers_test, version_1_2_works) {
    const auto [text, end] = after(TLS1_2_VERSION, [](SSL* ssl) {
        send(ssl, "hello");
        SSL_shutdown(ssl);
    });
    EXPECT_EQ(text, "hello");
    EXPECT_EQ(end, errc::end_of_stream);
}

/// The OCSP response that a client gets.
task<std::string> stapled(const tls::context& server, int version, const char* ciphers) {
    auto ends = raw_connected(version, server);
    SSL* const ssl = ends.client.ssl();
    if (version == TLS1_2_VERSION) SSL_set_cipher_list(ssl, ciphers);
    SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
    const auto [shaken, accepted] =
        co_await when_all(ends.client.handshake(), ends.server.handshake());
    EXPECT_TRUE(shaken);
    EXPECT_TRUE(accepted);
    const unsigned char* response = nullptr;
    const long size = SSL_get_tlsext_status_ocsp_resp(ssl, &response);
    if (size < 0) co_return std::string{};
    co_return std::string{reinterpret_cast<const char*>(response), static_cast<std::size_t>(size)};
}

// The last one used to be stapled to all certificates of a name.
TEST_P(tls_peers_test, each_certificate_has_its_own_ocsp_response) {
    const std::string rsa = certificate("server_rsa");
    const std::string files[] = {rsa + ".pem", rsa + ".key", rsa + ".ocsp",
                                 certificate("server.ocsp")};
    const std::array<tls::certificate_files, 1> more{tls::certificate_files{
        .chain_file = files[0], .key_file = files[1], .ocsp_response_file = files[2]}};
    const auto server = server_with("server", [&](tls::server_config& config) {
        config.more_certificates = more;
        config.ocsp_response_file = files[3];
    });
    const std::string of_server = testing::content(files[3]);
    const std::string of_server_rsa = testing::content(files[2]);

    run([&]() -> task<> {
        const std::string ec = co_await stapled(server, TLS1_2_VERSION, "ECDHE+ECDSA");
        const std::string with_rsa = co_await stapled(server, TLS1_2_VERSION, "ECDHE+aRSA");
        const std::string by_1_3 = co_await stapled(server, TLS1_3_VERSION, "");
        const std::string none = co_await stapled(server_with(), TLS1_3_VERSION, "");
        EXPECT_TRUE(ec == of_server);
        EXPECT_TRUE(with_rsa == of_server_rsa);
        EXPECT_TRUE(by_1_3 == of_server);
        EXPECT_EQ(none, "");
    });
}

// Used to go to a certificate that no name chooses.
TEST_P(tls_peers_test, a_key_of_another_kind_completes_the_first_certificate_of_a_name) {
    const std::string names[] = {certificate("server.pem"), certificate("server.key"),
                                 certificate("server_rsa.pem"), certificate("server_rsa.key")};
    const std::array<tls::certificate_files, 2> more{
        tls::certificate_files{.chain_file = names[0], .key_file = names[1]},
        tls::certificate_files{.chain_file = names[2], .key_file = names[3]}};
    const auto server =
        server_with("server", [&](tls::server_config& config) { config.more_certificates = more; });

    run([&]() -> task<> {
        auto ends = raw_connected(TLS1_2_VERSION, server);
        SSL_set_cipher_list(ends.client.ssl(), "ECDHE+aRSA");
        const auto [shaken, accepted] =
            co_await when_all(ends.client.handshake(), handshake_or_close(ends.server));
        EXPECT_TRUE(shaken);
        EXPECT_TRUE(accepted);
    });
}

TEST_P(tls_peers_test, older_versions_are_refused) {
    run([&]() -> task<> {
        auto ends = raw_connected(TLS1_1_VERSION);
        SSL_set_cipher_list(ends.client.ssl(), "ALL:@SECLEVEL=0");
        const auto [shaken, accepted] =
            co_await when_all(ends.client.handshake(), ends.server.handshake());
        EXPECT_FALSE(shaken);
        EXPECT_EQ(accepted.error(), tls::errc::no_common_version);
    });
}

TEST_P(tls_peers_test, a_few_key_updates_are_followed) {
    expect_bytes(100,
                 [](SSL* ssl) { EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1); });
}

// OpenSSL answers each KeyUpdate while it reads.
TEST_P(tls_peers_test, a_peer_that_does_not_read_the_answers_to_its_key_updates_has_to_wait) {
    run([&]() -> task<> {
        auto ends = co_await raw_shaken(TLS1_3_VERSION, 16'384);
        duplex_stream& transport = ends.client.transport();
        const auto update_once = [&] {
            EXPECT_EQ(SSL_key_update(ends.client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
            send(ends.client.ssl(), "x");
            const auto records = ends.client.take_output();
            EXPECT_EQ(transport.try_write_some(records).value_or(0), records.size());
            return ends.server.try_receive();
        };
        // An answer has 27 bytes; 16 KiB of them fit between the two.
        std::size_t followed = 0;
        while (followed < 20'000 && update_once())
            ++followed;
        EXPECT_GT(followed, 128U * 1024 / 27);
        EXPECT_LT(followed, 20'000U);
        EXPECT_EQ(error_of(ends.server.try_receive()), std::errc::operation_would_block);
        std::array<char, 8> buffer{};
        EXPECT_EQ(error_of(co_await with_timeout(ends.server.read_some(buffer),
                                                 std::chrono::milliseconds{1})),
                  errc::deadline_exceeded);

        std::vector<std::byte> answers(200'000);
        EXPECT_TRUE(co_await transport.read_some(answers));
        EXPECT_EQ((co_await ends.server.read_some(buffer)).value_or(0), 1U);
    });
}

/// A step of raw_tls::until_done().
int reads_close_notify(SSL* ssl) {
    char none = 0;
    static_cast<void>(SSL_read(ssl, &none, 1));
    return SSL_get_shutdown(ssl) == SSL_RECEIVED_SHUTDOWN ? 1 : -1;
}

// They used to leave before answers that were given while a write was under way, in the wrong order
// for the peer.
TEST_P(tls_peers_test, what_is_sealed_after_a_stopped_write_follows_answers_to_key_updates) {
    run([&]() -> task<> {
        auto ends = co_await raw_shaken(TLS1_3_VERSION, 16'384);
        SSL* const client = ends.client.ssl();
        const auto update = [&]() -> task<> {
            EXPECT_EQ(SSL_key_update(client, SSL_KEY_UPDATE_REQUESTED), 1);
            send(client, "x");
            EXPECT_TRUE(co_await ends.client.flush());
            EXPECT_TRUE(ends.server.try_receive());
        };
        const auto update_twice = [&]() -> task<> { // OpenSSL answers the first before the second
            co_await update();
            co_await update();
        };
        const std::string text(40'000, 't');
        const auto [written, updated] = co_await when_all(
            with_timeout(ends.server.write_some(text), std::chrono::milliseconds{20}),
            update_twice());
        EXPECT_EQ(written.value_or(0), text.size());
        co_await update();

        std::string got;
        const auto [whole, ended] = co_await when_all(read_exactly(ends.client, text.size(), got),
                                                      ends.server.shutdown_write());
        EXPECT_TRUE(whole);
        EXPECT_TRUE(ended);
        EXPECT_TRUE(got == text);
        EXPECT_TRUE(co_await ends.client.until_done(reads_close_notify));
    });
}

// The answer leaves with the next write, in a record before its data.
TEST_P(tls_peers_test, writes_take_answers_to_key_updates_along) {
    for (const std::size_t capacity : {1000U, 100'000U}) {
        run([&]() -> task<> {
            auto ends = co_await raw_shaken(TLS1_3_VERSION, capacity);
            for (int each = 0; each < 20; ++each) {
                EXPECT_EQ(SSL_key_update(ends.client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
                send(ends.client.ssl(), "x");
                EXPECT_TRUE(co_await ends.client.flush());
                EXPECT_TRUE(co_await ends.server.receive());
                const std::string text(static_cast<std::size_t>(each) * 2000 + 1, 't');
                std::string got;
                const auto [read, written] =
                    co_await when_all(read_exactly(ends.client, text.size(), got),
                                      async_write_all(ends.server, text));
                EXPECT_TRUE(read);
                EXPECT_TRUE(written);
                EXPECT_TRUE(got == text);
            }
        });
    }
}

// Answers behind it used to keep shutdown_write() waiting for a peer that no longer reads.
TEST_P(tls_peers_test, nothing_follows_a_close_notify) {
    run([&]() -> task<> {
        auto ends = co_await raw_shaken(TLS1_3_VERSION);
        const auto ask = [&]() -> task<> {
            EXPECT_EQ(SSL_key_update(ends.client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
            send(ends.client.ssl(), "x");
            EXPECT_TRUE(co_await ends.client.flush());
            std::array<char, 8> buffer{};
            EXPECT_EQ((co_await ends.server.read_some(buffer)).value_or(0), 1U);
        };
        co_await ask();
        EXPECT_TRUE(co_await ends.server.shutdown_write());
        EXPECT_TRUE(co_await ends.client.until_done(reads_close_notify));
        co_await ask(); // OpenSSL answers the first one before this one
        EXPECT_EQ(error_of(ends.server.try_receive()), std::errc::operation_would_block);
        EXPECT_EQ(error_of(ends.client.transport().try_receive()),
                  std::errc::operation_would_block);
    });
}

TEST_P(tls_peers_test, a_flood_of_key_updates_ends_the_connection) {
    const auto [text, end] = after(TLS1_3_VERSION, [](SSL* ssl) {
        for (int each = 0; each < 1000; ++each) {
            EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
            EXPECT_EQ(SSL_do_handshake(ssl), 1);
        }
        send(ssl, "x");
    });
    EXPECT_EQ(text, "");
    EXPECT_EQ(end, tls::errc::record_invalid);
}

// Each costs a derivation of keys. A client that mixed them with data used to hold up all others of
// its loop until its input was used up.
TEST_P(tls_peers_test, others_have_their_turn_between_the_key_updates_of_a_peer) {
    run([&]() -> task<> {
        auto ends = co_await raw_shaken(TLS1_3_VERSION);
        for (int each = 0; each < 200; ++each) {
            EXPECT_EQ(SSL_key_update(ends.client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
            send(ends.client.ssl(), "x");
        }
        SSL_shutdown(ends.client.ssl());
        EXPECT_TRUE(co_await ends.client.flush());

        std::string text;
        bool has_ended = false;
        int turns = 0;
        auto reading = [&]() -> task<> {
            std::error_code end;
            text = co_await read_all(ends.server, end);
            EXPECT_EQ(end, errc::end_of_stream);
            has_ended = true;
        };
        auto counting = [&]() -> task<> {
            while (!has_ended) {
                ++turns;
                co_await yield();
            }
        };
        co_await when_all(reading(), counting());
        EXPECT_EQ(text, std::string(200, 'x'));
        EXPECT_GE(turns, 200 / 10);
    });
}

TEST_P(tls_peers_test, records_of_one_byte_are_only_slow) {
    expect_bytes(3000, [](SSL*) {});
}

TEST_P(tls_peers_test, a_renegotiation_is_refused) {
    const auto [text, end] = after(TLS1_2_VERSION, [](SSL* ssl) {
        EXPECT_EQ(SSL_renegotiate(ssl), 1);
        static_cast<void>(SSL_do_handshake(ssl)); // writes the ClientHello
    });
    EXPECT_EQ(text, "");
    EXPECT_EQ(end, tls::errc::renegotiation_refused);
}

// --- records that say nothing --------------------------------------------------------------------

/// Both roles of the raw peer, and both versions.
struct raw_role {
    raw_side plays;
    int version;
};
constexpr raw_role all_roles[] = {{raw_side::client, TLS1_2_VERSION},
                                  {raw_side::client, TLS1_3_VERSION},
                                  {raw_side::server, TLS1_2_VERSION},
                                  {raw_side::server, TLS1_3_VERSION}};

struct roles {
    raw_tls raw;
    memory_stream victim;
};
roles cast(raw_role role) {
    auto [left, right] = duplex(std::size_t{1} << 20U);
    const bool serves = role.plays == raw_side::client;
    return {raw_tls{std::move(left), role.plays, role.version},
            serves
                ? memory_stream{std::move(right), server_with()}
                : memory_stream{std::move(right), testing::client(), {.server_name = "localhost"}}};
}

constexpr std::string_view close_notify{"\1\0", 2};
constexpr std::string_view user_canceled{"\1\x5a", 2};

class tls_records_test : public testing::backend_test {
protected:
    /// What a victim reads after the handshake, and with which end, of records that `make` seals.
    template <class Make>
    std::pair<std::string, std::error_code> read_of(raw_role role, Make make) {
        std::pair<std::string, std::error_code> got;
        still_alive();
        run([&]() -> task<> {
            auto both = cast(role);
            auto [shaken, accepted] =
                co_await when_all(both.raw.handshake(), both.victim.handshake());
            EXPECT_TRUE(shaken && accepted);
            testing::record_sealer sealer{both.raw};
            make(sealer);
            EXPECT_TRUE(co_await async_write_all(both.raw.transport(), sealer.records()));
            both.raw.transport().close();
            got.first = co_await read_all(both.victim, got.second);
        });
        return got;
    }
    /// The victim reads five bytes, before each of which `seal_more` puts records without data.
    template <class More>
    void expect_passed_over(More seal_more) {
        for (const raw_role role : all_roles) {
            const auto [text, end] = read_of(role, [&](testing::record_sealer& sealer) {
                for (int each = 0; each < 5; ++each) {
                    seal_more(sealer);
                    sealer.seal("x");
                }
                sealer.seal(close_notify, SSL3_RT_ALERT);
            });
            EXPECT_EQ(text, std::string(5, 'x'));
            EXPECT_EQ(end, errc::end_of_stream) << end.message();
        }
    }
    /// The victim reads what comes before the records of `seal_many`, and then fails.
    template <class Many>
    void expect_flood(Many seal_many) {
        for (const raw_role role : all_roles) {
            const auto [text, end] = read_of(role, [&](testing::record_sealer& sealer) {
                sealer.seal("x");
                seal_many(sealer);
                sealer.seal("y");
            });
            EXPECT_EQ(text, "x");
            EXPECT_EQ(end, tls::errc::record_invalid) << end.message();
        }
    }
};

TEST_P(tls_records_test, a_few_empty_records_are_passed_over) {
    expect_passed_over(
        [](testing::record_sealer& sealer) { sealer.seal("", SSL3_RT_APPLICATION_DATA, 10); });
}

TEST_P(tls_records_test, a_flood_of_empty_records_ends_the_connection) {
    expect_flood(
        [](testing::record_sealer& sealer) { sealer.seal("", SSL3_RT_APPLICATION_DATA, 100); });
}

TEST_P(tls_records_test, a_few_warnings_are_passed_over) {
    expect_passed_over(
        [](testing::record_sealer& sealer) { sealer.seal(user_canceled, SSL3_RT_ALERT, 3); });
}

TEST_P(tls_records_test, a_flood_of_warnings_ends_the_connection) {
    expect_flood(
        [](testing::record_sealer& sealer) { sealer.seal(user_canceled, SSL3_RT_ALERT, 100); });
}

TEST_P(tls_records_test, a_server_that_asks_for_a_renegotiation_is_refused) {
    run([&]() -> task<> {
        auto both = cast({raw_side::server, TLS1_2_VERSION});
        auto [shaken, accepted] = co_await when_all(both.raw.handshake(), both.victim.handshake());
        EXPECT_TRUE(shaken && accepted);
        send(both.raw.ssl(), "x");
        EXPECT_EQ(SSL_renegotiate(both.raw.ssl()), 1);
        static_cast<void>(SSL_do_handshake(both.raw.ssl())); // writes a HelloRequest
        EXPECT_TRUE(co_await both.raw.flush());
        both.raw.transport().close();
        std::error_code end;
        EXPECT_EQ(co_await read_all(both.victim, end), "x");
        EXPECT_EQ(end, tls::errc::renegotiation_refused) << end.message();
    });
}

TEST_P(tls_records_test, a_handshake_in_fragments_of_one_byte_succeeds) {
    for (const raw_role role : all_roles) {
        still_alive();
        run([&]() -> task<> {
            auto both = cast(role);
            both.raw.send_fragments();
            auto [shaken, accepted] =
                co_await when_all(both.raw.handshake(), handshake_or_close(both.victim));
            EXPECT_TRUE(shaken);
            EXPECT_TRUE(accepted) << accepted.error().message();
        });
    }
}

constexpr std::string_view early_data{"\x17\3\3\0\5hello", 10};

TEST_P(tls_records_test, application_data_instead_of_a_hello_is_no_tls) {
    for (const raw_side plays : {raw_side::client, raw_side::server}) {
        still_alive();
        run([&]() -> task<> {
            auto both = cast({plays, TLS1_2_VERSION});
            EXPECT_TRUE(co_await async_write_all(both.raw.transport(), early_data));
            const auto made = co_await handshake_or_close(both.victim);
            EXPECT_EQ(made.error(), tls::errc::not_tls) << made.error().message();
        });
    }
}

TEST_P(tls_records_test, application_data_during_the_handshake_is_refused) {
    for (const raw_role role : all_roles) {
        still_alive();
        run([&]() -> task<> {
            auto both = cast(role);
            auto intrude = [&]() -> task<bool> {
                // Its first flight, and then data instead of the rest.
                const auto one_flight = [answered = false](SSL* ssl) mutable {
                    if (answered) return 1;
                    const int made = SSL_do_handshake(ssl);
                    answered = BIO_pending(SSL_get_wbio(ssl)) != 0;
                    return answered ? 1 : made;
                };
                if (!co_await both.raw.until_done(one_flight)) co_return false;
                co_return (co_await async_write_all(both.raw.transport(), early_data)).has_value();
            };
            auto intruding = intrude();
            auto [sent, made] =
                co_await when_all(std::move(intruding), handshake_or_close(both.victim));
            EXPECT_TRUE(sent);
            // A server of 1.3 has completed the handshake with its first flight.
            const bool completes = role.plays == raw_side::server && role.version == TLS1_3_VERSION;
            EXPECT_EQ(made.has_value(), completes);
            std::error_code end;
            EXPECT_EQ(co_await read_all(both.victim, end), "");
            const std::error_code why = completes ? end : made.error();
            EXPECT_EQ(why, tls::errc::record_invalid) << why.message();
        });
    }
}

// --- records that are not whole ------------------------------------------------------------------

TEST_P(tls_peers_test, a_record_that_was_changed_on_the_way_is_refused_whole) {
    run([&]() -> task<> {
        auto ends = co_await raw_shaken(TLS1_3_VERSION);
        send(ends.client.ssl(), "good");
        EXPECT_TRUE(co_await ends.client.flush());
        send(ends.client.ssl(), "evil");
        BIO* const out = SSL_get_wbio(ends.client.ssl());
        char* data = nullptr;
        const long size = BIO_get_mem_data(out, &data);
        data[size - 1] = static_cast<char>(data[size - 1] ^ 1);
        EXPECT_TRUE(co_await ends.client.flush());
        std::error_code end;
        EXPECT_EQ(co_await read_all(ends.server, end), "good");
        EXPECT_EQ(end, tls::errc::record_invalid);
        EXPECT_EQ((co_await ends.server.write_some("x")).error(), tls::errc::record_invalid);
    });
}

TEST_P(tls_peers_test, a_connection_that_is_cut_at_any_byte_is_truncated) {
    for (std::size_t cut = 0; cut < 26; ++cut) {
        run([&]() -> task<> {
            auto ends = co_await raw_shaken(TLS1_3_VERSION);
            send(ends.client.ssl(), "text");
            std::vector<std::byte> record(100);
            BIO* const out = SSL_get_wbio(ends.client.ssl());
            BIO_read(out, record.data(), static_cast<int>(record.size()));
            const auto part = std::span{record}.first(cut);
            EXPECT_TRUE(co_await async_write_all(ends.client.transport(), const_buffer{part}));
            ends.client.transport().close();
            std::error_code end;
            EXPECT_EQ(co_await read_all(ends.server, end), "");
            EXPECT_EQ(end, tls::errc::truncated) << cut;
        });
    }
}

TEST_P(tls_peers_test, an_error_that_others_left_in_the_queue_of_openssl_does_not_matter) {
    run([&]() -> task<> {
        auto ends = co_await raw_shaken(TLS1_3_VERSION);
        send(ends.client.ssl(), "text");
        EXPECT_TRUE(co_await ends.client.flush());
        ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await ends.server.read_some(buffer)).value_or(0), 4U);
        ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
        EXPECT_EQ((co_await ends.server.write_some("answer")).value_or(0), 6U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tls_peers_test, testing::all_backends, testing::backend_name);
INSTANTIATE_TEST_SUITE_P(backends, tls_records_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
