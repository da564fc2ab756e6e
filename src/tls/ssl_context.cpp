#include "tls/ssl_context.hpp"

#include "tls/engine_access.hpp"
#include "tls/names.hpp"
#include "tls/pem.hpp"

#include <new>
#include <span>
#include <string>

#include <unistd.h>

namespace simplenet::v0::tls::detail {

namespace {

// Forward secret, authenticated encryption only: no static RSA, no CBC, no finite-field
// Diffie-Hellman.
constexpr const char* standard_ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* standard_cipher_suites =
    "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
constexpr const char* standard_groups = "X25519:P-256";
// Those of the groups and of RSA keys, without SHA-1 and DSA.
constexpr const char* standard_signatures =
    "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519:ed448:"
    "RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512:rsa_pss_pss_sha256:rsa_pss_pss_sha384:"
    "rsa_pss_pss_sha512:RSA+SHA256:RSA+SHA384:RSA+SHA512";

const material& material_of(SSL_CTX* context) noexcept {
    return *static_cast<const material*>(SSL_CTX_get_app_data(context));
}
const material& material_of(SSL* connection) noexcept {
    return material_of(SSL_get_SSL_CTX(connection));
}

// --- what OpenSSL calls --------------------------------------------------------------------------

void log_key(const SSL* connection, const char* line) noexcept {
    const material& here = material_of(SSL_get_SSL_CTX(connection));
    try {
        // In one write(2), because other connections write as well. If it fails, a log is
        // incomplete.
        const std::string text = std::string{line} + '\n';
        static_cast<void>(!::write(here.state().key_log.get(), text.data(), text.size()));
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): as a failed write
    }
}

/// The host_name of SNI in lower case (RFC 6066, section 3); empty: none, or a malformed one. The
/// RFC forbids a dot at the end, but some clients send the one of their URL: it is dropped.
std::string name_in_hello(SSL* connection) {
    const unsigned char* data = nullptr;
    std::size_t size = 0;
    if (SSL_client_hello_get0_ext(connection, TLSEXT_TYPE_server_name, &data, &size) != 1)
        return {};
    // Length of the list, type 0, length of the name.
    const std::span extension{data, size};
    if (size < 5 || extension[2] != TLSEXT_NAMETYPE_host_name) return {};
    const std::size_t length = extension[3] * 256U + extension[4];
    if (size - 5 < length) return {};
    std::string name = in_lower_case({reinterpret_cast<const char*>(data) + 5, length});
    if (name.ends_with('.')) name.pop_back();
    return name;
}

// Before anything else looks at the message, so that a ticket is checked against the certificate
// that was chosen.
int choose_certificate(SSL* connection, int*, void*) noexcept {
    try {
        const material& here = material_of(connection);
        SSL_CTX* const chosen = here.for_name(name_in_hello(connection));
        if (chosen != nullptr && SSL_set_SSL_CTX(connection, chosen) == nullptr) {
            return SSL_CLIENT_HELLO_ERROR;
        }
        return SSL_CLIENT_HELLO_SUCCESS;
    } catch (const std::bad_alloc&) {
        return SSL_CLIENT_HELLO_ERROR;
    }
}

int acknowledge_name(SSL*, int*, void*) noexcept {
    return SSL_TLSEXT_ERR_OK;
}

int choose_protocol(SSL* connection, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void*) noexcept {
    const std::string& ours = material_of(connection).config().alpn;
    unsigned char* found = nullptr;
    const int made = SSL_select_next_proto(
        &found, chosen_size, reinterpret_cast<const unsigned char*>(ours.data()),
        static_cast<unsigned int>(ours.size()), offered, offered_size);
    if (made != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

int seal_or_open_ticket(SSL* connection, unsigned char* key_name, unsigned char* iv,
                        EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int seals) noexcept {
    context_state& here = material_of(connection).state();
    if (seals == 1) return here.tickets.seal(here.library.get(), key_name, iv, cipher, mac);
    const int opened = here.tickets.open(here.library.get(), key_name, iv, cipher, mac);
    // 2: with a new ticket. One of TLS 1.3 is used once.
    return opened == 1 && SSL_version(connection) == TLS1_3_VERSION ? 2 : opened;
}

int staple(SSL* connection, void*) noexcept {
    // OpenSSL has chosen the certificate by now, see SSL_CTX_set_tlsext_status_cb(3).
    const std::string* const der =
        material_of(connection).ocsp_response_for(SSL_get_certificate(connection));
    if (der == nullptr) return SSL_TLSEXT_ERR_NOACK;
    void* const copy = OPENSSL_memdup(der->data(), der->size());
    if (copy == nullptr) return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(connection, copy, static_cast<long>(der->size()));
    return SSL_TLSEXT_ERR_OK;
}

int keep_session(SSL* connection, SSL_SESSION* session) noexcept {
    engine_access::of(connection).keep_session(session_ptr{session});
    return 1; // taken
}

int verify_chain(X509_STORE_CTX* chain, void*) noexcept {
    auto* const connection =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const bool valid = X509_verify_cert(chain) == 1;
    const settings& config = material_of(connection).config();
    if (config.verifies && !valid) return 0;
    if (config.verify_peer == nullptr) return 1;
    if (engine_access::accepts(X509_STORE_CTX_get0_cert(chain), X509_STORE_CTX_get_error(chain),
                               config)) {
        return 1;
    }
    X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

// --- settings ------------------------------------------------------------------------------------

const char* text_or(const std::string& given, const char* standard) noexcept {
    return given.empty() ? standard : given.c_str();
}

loaded<void> set_algorithms(SSL_CTX* context, const settings& config) {
    SSL_CTX_set_security_level(context, 2);
    const int lowest = config.minimum == version::tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    if (SSL_CTX_set_min_proto_version(context, lowest) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1) {
        return bad("versions");
    }
    if (SSL_CTX_set_cipher_list(context, text_or(config.ciphers, standard_ciphers)) != 1) {
        return bad("ciphers");
    }
    if (SSL_CTX_set_ciphersuites(context, text_or(config.cipher_suites, standard_cipher_suites)) !=
        1) {
        return bad("cipher_suites");
    }
    if (SSL_CTX_set1_groups_list(context, text_or(config.groups, standard_groups)) != 1) {
        return bad("groups");
    }
    if (SSL_CTX_set1_sigalgs_list(context, standard_signatures) != 1 ||
        SSL_CTX_set1_client_sigalgs_list(context, standard_signatures) != 1) {
        return bad("signature algorithms");
    }
    return {};
}

/// What the system's configuration file may have set goes, too.
void set_options(SSL_CTX* context, const settings& config) noexcept {
    SSL_CTX_clear_options(context, ~std::uint64_t{0});
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_SSLv3 |
                                     SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                     SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION // since 3.2
    SSL_CTX_set_options(context, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION |
                                     SSL_OP_NO_TX_CERTIFICATE_COMPRESSION);
#endif
    SSL_CTX_clear_mode(context, SSL_CTX_get_mode(context));
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY | SSL_MODE_RELEASE_BUFFERS |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_max_early_data(context, 0);
    // Skipped, see RFC 8446, 4.2.10: a client may have a ticket of another server for this name.
    SSL_CTX_set_recv_max_early_data(context, SSL3_RT_MAX_PLAIN_LENGTH);
    SSL_CTX_set_block_padding(context, 0);
    SSL_CTX_set_read_ahead(context, 0);
    SSL_CTX_set_post_handshake_auth(context, 0);
    SSL_CTX_set_verify_depth(context, static_cast<int>(config.max_chain_depth));
}

void set_up_client(SSL_CTX* context, const settings& config) {
    SSL_CTX_set_verify(context,
                       config.verifies || config.verify_peer != nullptr ? SSL_VERIFY_PEER
                                                                        : SSL_VERIFY_NONE,
                       nullptr);
    SSL_CTX_set_cert_verify_callback(context, &verify_chain, nullptr);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, &keep_session);
    if (!config.alpn.empty() &&
        SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(config.alpn.data()),
                                static_cast<unsigned int>(config.alpn.size())) != 0) {
        throw std::bad_alloc{};
    }
}

void set_up_server(SSL_CTX* context, const settings& config) noexcept {
    int asks = SSL_VERIFY_NONE;
    if (config.ask != client_certificate::none) asks = SSL_VERIFY_PEER;
    if (config.ask == client_certificate::required) asks |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, asks, nullptr);
    SSL_CTX_set_client_hello_cb(context, &choose_certificate, nullptr);
    SSL_CTX_set_tlsext_servername_callback(context, &acknowledge_name);
    SSL_CTX_set_tlsext_status_cb(context, &staple);
    if (!config.alpn.empty()) SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); // tickets hold the sessions
    if (config.session_tickets) {
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &seal_or_open_ticket);
        SSL_CTX_set_timeout(context, static_cast<long>(config.ticket_lifetime.count()));
        SSL_CTX_set_num_tickets(context, 2);
    } else {
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
    }
}

} // namespace

loaded<ssl_context_ptr> make_ssl_context(const material& of) {
    ERR_clear_error();
    const settings& config = of.config();
    ssl_context_ptr made{
        SSL_CTX_new_ex(of.state().library.get(), nullptr,
                       config.plays == side::server ? TLS_server_method() : TLS_client_method())};
    if (!made) throw std::bad_alloc{};
    if (SSL_CTX_set_app_data(made.get(), const_cast<material*>(&of)) != 1) throw std::bad_alloc{};
    set_options(made.get(), config);
    if (auto set = set_algorithms(made.get(), config); !set) {
        return std::unexpected{std::move(set).error()};
    }
    if (config.plays == side::client) {
        set_up_client(made.get(), config);
    } else {
        set_up_server(made.get(), config);
    }
    if (of.state().key_log) SSL_CTX_set_keylog_callback(made.get(), &log_key);
    return made;
}

} // namespace simplenet::v0::tls::detail
