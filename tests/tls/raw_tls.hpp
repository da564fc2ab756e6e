#pragma once
// raw_tls: a peer by OpenSSL itself over a transport of the library, which may say what no stream
// of the library says.

#include "tls/tls_pair.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>

namespace simplenet::v0::testing {

/// Which side a raw peer plays.
enum class raw_side : bool { client, server };

template <class S>
class raw_tls_over {
public:
    /// A server has the certificate `server`, and gives no tickets.
    raw_tls_over(S over, raw_side plays, int version)
        : over_{std::move(over)}
        , context_{SSL_CTX_new(plays == raw_side::server ? TLS_server_method()
                                                         : TLS_client_method()),
                   &SSL_CTX_free}
        , in_{BIO_new(BIO_s_mem())}
        , out_{BIO_new(BIO_s_mem())} {
        SSL_CTX_set_max_proto_version(context_.get(), version);
        SSL_CTX_set_min_proto_version(context_.get(), version);
        // Those that record_sealer knows.
        SSL_CTX_set_ciphersuites(context_.get(), "TLS_AES_128_GCM_SHA256");
        SSL_CTX_set_cipher_list(context_.get(), "ECDHE+AESGCM");
        SSL_CTX_set_app_data(context_.get(), key_log_.get());
        SSL_CTX_set_keylog_callback(context_.get(), [](const SSL* ssl, const char* line) {
            auto* const log = static_cast<std::string*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
            log->append(line).append("\n");
        });
        if (plays == raw_side::server) {
            const std::string chain = certificate("server.pem");
            const std::string key = certificate("server.key");
            SSL_CTX_use_certificate_chain_file(context_.get(), chain.c_str());
            SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM);
            SSL_CTX_set_options(context_.get(), SSL_OP_NO_TICKET);
            SSL_CTX_set_num_tickets(context_.get(), 0);
        }
        ssl_.reset(SSL_new(context_.get()));
        SSL_set_bio(ssl_.get(), in_, out_);
        if (plays == raw_side::server) {
            SSL_set_accept_state(ssl_.get());
        } else {
            SSL_set_connect_state(ssl_.get());
        }
    }

    /// Repeats `step`, a call of OpenSSL, until it needs nothing more. False: it failed.
    template <class Step>
    task<bool> until_done(Step step) {
        for (;;) {
            const int made = step(ssl_.get());
            if (!co_await flush()) co_return false;
            if (made > 0) co_return true;
            if (SSL_get_error(ssl_.get(), made) != SSL_ERROR_WANT_READ) co_return false;
            std::array<std::byte, 4096> some{};
            const auto count = co_await over_.read_some(some);
            if (!count) co_return false;
            const int size = static_cast<int>(*count);
            if (BIO_write(in_, some.data(), size) != size) co_return false;
        }
    }
    task<bool> handshake() { return until_done(SSL_do_handshake); }

    /// What OpenSSL has to say.
    std::vector<std::byte> take_output() {
        std::vector<std::byte> waiting(BIO_pending(out_));
        if (!waiting.empty()) BIO_read(out_, waiting.data(), static_cast<int>(waiting.size()));
        return fragments_ ? in_fragments(waiting) : waiting;
    }
    /// Sends it.
    task<bool> flush() {
        const auto waiting = take_output();
        if (waiting.empty()) co_return true;
        const auto sent = co_await async_write_all(over_, const_buffer{waiting});
        co_return sent.has_value();
    }
    /// Sends handshake messages in records of one byte each, as long as they are not encrypted.
    void send_fragments() noexcept { fragments_ = true; }

    SSL* ssl() const noexcept { return ssl_.get(); }
    const std::string& key_log() const noexcept { return *key_log_; }
    S& transport() noexcept { return over_; }

private:
    std::vector<std::byte> in_fragments(std::span<const std::byte> records) {
        std::vector<std::byte> all;
        while (records.size() >= 5) {
            const auto size = std::to_integer<std::size_t>(records[3]) * 256 +
                              std::to_integer<std::size_t>(records[4]);
            const auto whole = records.first(5 + size);
            records = records.subspan(whole.size());
            if (whole[0] != std::byte{SSL3_RT_HANDSHAKE}) {
                fragments_ = false; // encrypted from here on
                all.insert(all.end(), whole.begin(), whole.end());
                all.insert(all.end(), records.begin(), records.end());
                return all;
            }
            for (const std::byte each : whole.subspan(5)) {
                all.insert(all.end(), whole.begin(), whole.begin() + 3);
                all.insert(all.end(), {std::byte{0}, std::byte{1}, each});
            }
        }
        return all;
    }

    std::unique_ptr<std::string> key_log_ = std::make_unique<std::string>();
    bool fragments_ = false;
    S over_;
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
    struct frees {
        void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
    };
    std::unique_ptr<SSL, frees> ssl_;
    BIO* in_; // of ssl_
    BIO* out_;
};
using raw_tls = raw_tls_over<duplex_stream>;

/// Seals records as a raw peer, which says nothing itself any more, with AES-128-GCM or
/// AES-256-GCM.
class record_sealer {
public:
    /// @pre The handshake is complete.
    template <class S>
    explicit record_sealer(const raw_tls_over<S>& as)
        : is_1_3_{SSL_version(as.ssl()) == TLS1_3_VERSION}
        , number_{is_1_3_ ? 0U : 1U} { // after the Finished of 1.2
        SSL* const ssl = as.ssl();
        const bool is_server = SSL_is_server(ssl) == 1;
        if (is_1_3_) {
            use(logged(as.key_log(),
                       is_server ? "SERVER_TRAFFIC_SECRET_0" : "CLIENT_TRAFFIC_SECRET_0"));
            return;
        }
        const std::size_t size = SSL_CIPHER_get_bits(SSL_get_current_cipher(ssl), nullptr) / 8;
        const EVP_MD* const digest = SSL_CIPHER_get_handshake_digest(SSL_get_current_cipher(ssl));
        std::string master(48, '\0');
        std::string seed{"key expansion"};
        std::string random(32, '\0');
        SSL_SESSION_get_master_key(SSL_get_session(ssl), bytes_of(master), master.size());
        SSL_get_server_random(ssl, bytes_of(random), random.size());
        seed += random;
        SSL_get_client_random(ssl, bytes_of(random), random.size());
        seed += random;
        const std::string block =
            derive("TLS1-PRF", master, seed, 2 * size + 8, EVP_MD_get0_name(digest));
        key_ = block.substr(is_server ? size : 0, size);
        iv_ = block.substr(2 * size + (is_server ? 4 : 0), 4);
    }

    /// Appends `count` records.
    void seal(std::string_view content, int type = SSL3_RT_APPLICATION_DATA, int count = 1) {
        for (int each = 0; each < count; ++each)
            records_ += sealed(content, type);
    }
    /// The keys of the next records, after a KeyUpdate. @pre Version 1.3.
    void update_keys() {
        use(derive("HKDF", secret_, std::string{"\0\x20\x11tls13 traffic upd\0", 21}, 32));
        number_ = 0;
    }
    [[nodiscard]] const std::string& records() const noexcept { return records_; }
    [[nodiscard]] std::string take_records() noexcept { return std::exchange(records_, {}); }

private:
    void use(std::string secret) {
        secret_ = std::move(secret);
        key_ = derive("HKDF", secret_, std::string{"\0\x10\x09tls13 key\0", 13}, 16);
        iv_ = derive("HKDF", secret_, std::string{"\0\x0c\x08tls13 iv\0", 12}, 12);
    }
    std::string sealed(std::string_view content, int type) {
        std::string number;
        for (int shift = 56; shift >= 0; shift -= 8)
            number += static_cast<char>(number_ >> static_cast<unsigned>(shift));
        ++number_;
        std::string inner{content};
        std::string nonce = iv_;
        std::string header;
        std::string authenticated;
        if (is_1_3_) {
            inner += static_cast<char>(type);
            header = record_header(SSL3_RT_APPLICATION_DATA, inner.size() + 16);
            authenticated = header;
            for (std::size_t each = 0; each < 8; ++each)
                nonce[4 + each] = static_cast<char>(nonce[4 + each] ^ number[each]);
        } else {
            header = record_header(type, 8 + inner.size() + 16) + number;
            authenticated = number + record_header(type, inner.size());
            nonce += number;
        }
        return header + encrypted(inner, nonce, authenticated);
    }
    static unsigned char* bytes_of(std::string& text) {
        return reinterpret_cast<unsigned char*>(text.data());
    }
    static const unsigned char* bytes_of(const std::string& text) {
        return reinterpret_cast<const unsigned char*>(text.data());
    }
    static std::string record_header(int type, std::size_t size) {
        return {static_cast<char>(type), 3, 3, static_cast<char>(size / 256),
                static_cast<char>(size % 256)};
    }
    /// The secret of a line "label random secret".
    static std::string logged(const std::string& log, const std::string& label) {
        const std::size_t secret = log.find(' ', log.find(label + ' ') + label.size() + 1) + 1;
        const std::string digits = log.substr(secret, log.find('\n', secret) - secret);
        std::string bytes;
        for (std::size_t each = 0; each + 1 < digits.size(); each += 2)
            bytes += static_cast<char>(std::stoi(digits.substr(each, 2), nullptr, 16));
        return bytes;
    }
    static std::string derive(const char* by, std::string secret, std::string info,
                              std::size_t size, std::string digest = "SHA256") {
        EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, by, nullptr);
        EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
        const bool is_prf = std::string_view{by} == "TLS1-PRF";
        int expand_only = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
        const std::array parameters{
            OSSL_PARAM_construct_utf8_string("digest", digest.data(), 0),
            OSSL_PARAM_construct_octet_string(is_prf ? "secret" : "key", secret.data(),
                                              secret.size()),
            OSSL_PARAM_construct_octet_string(is_prf ? "seed" : "info", info.data(), info.size()),
            is_prf ? OSSL_PARAM_construct_end() : OSSL_PARAM_construct_int("mode", &expand_only),
            OSSL_PARAM_construct_end()};
        std::string derived(size, '\0');
        EXPECT_EQ(EVP_KDF_derive(context, bytes_of(derived), size, parameters.data()), 1);
        EVP_KDF_CTX_free(context);
        EVP_KDF_free(kdf);
        return derived;
    }
    std::string encrypted(const std::string& text, const std::string& nonce,
                          const std::string& authenticated) const {
        EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
        std::string sealed(text.size() + 16, '\0');
        int size = 0;
        EVP_EncryptInit_ex(context, key_.size() == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(),
                           nullptr, bytes_of(key_), bytes_of(nonce));
        EVP_EncryptUpdate(context, nullptr, &size, bytes_of(authenticated),
                          static_cast<int>(authenticated.size()));
        EVP_EncryptUpdate(context, bytes_of(sealed), &size, bytes_of(text),
                          static_cast<int>(text.size()));
        EVP_EncryptFinal_ex(context, nullptr, &size);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, sealed.data() + text.size());
        EVP_CIPHER_CTX_free(context);
        return sealed;
    }

    bool is_1_3_;
    std::uint64_t number_;
    std::string secret_; // of version 1.3
    std::string key_;
    std::string iv_;
    std::string records_;
};

} // namespace simplenet::v0::testing
