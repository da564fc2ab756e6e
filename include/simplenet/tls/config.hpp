#pragma once
// tls::client_config and tls::server_config: what a tls::context is made from. Layer tls.

#include <simplenet/core/abi.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

class peer_certificate;
class session_cache;

/// Versions of TLS. Older ones cannot be had.
enum class version : std::uint8_t { tls_1_2, tls_1_3 };

/// How a client verifies and identifies itself. The texts are views, which context::client()
/// copies.
///
/// The defaults trust what the system trusts, and verify the chain and the name.
struct client_config {
    /// @name Trust
    /// Certificates in PEM that issuers are looked for in, and a directory of them with names by
    /// hash (openssl-rehash(1)). If none is given, the system's store. What is given replaces it,
    /// and all of it is trusted.
    /// @{
    std::string_view ca_file = {};
    std::string_view ca_directory = {};
    std::string_view ca_pem = {};
    /// @}

    /// Off: neither the chain nor the name is verified, so anybody on the way can read and change
    /// everything. Only for tests, and for programs whose `verify_peer` decides.
    bool verify = true;
    version minimum = version::tls_1_2;

    /// @name Algorithms
    /// Lists as OpenSSL writes them: cipher suites of TLS 1.2, cipher suites of TLS 1.3, groups. If
    /// empty: ECDHE with AES-GCM or ChaCha20-Poly1305; X25519 and P-256. The security
    /// level of SSL_CTX_set_security_level(3) is 2, unless `ciphers` contains `@SECLEVEL=`.
    /// @{
    std::string_view ciphers = {};
    std::string_view cipher_suites = {};
    std::string_view groups = {};
    /// @}

    /// ALPN: the application protocols that are offered, in order of preference.
    std::span<const std::string_view> alpn = {};

    /// @name Identity
    /// For servers that ask for a certificate. Both from files or both as text, in PEM.
    /// @{
    std::string_view certificate_chain_file = {};
    std::string_view private_key_file = {};
    std::string_view certificate_chain_pem = {};
    std::string_view private_key_pem = {};
    /// @}

    /// Revocation lists in PEM. If given, each certificate of the chain but the root must be
    /// covered by a current one.
    std::string_view crl_file = {};

    /// The secrets of the connections are appended to this file in the format of NSS, for programs
    /// such as Wireshark. Whoever can read it can read everything, so it gets the mode 0600, also
    /// if it exists. A regular file, or a device.
    std::string_view key_log_file = {};
    /// The same, to the file that the environment variable SSLKEYLOGFILE names, if there is one and
    /// secure_getenv(3) gives it.
    bool key_log_from_environment = false;

    /// The most certificates between the peer's and the root.
    unsigned max_chain_depth = 10;

    /// Where sessions are kept for resumption. Must outlive the contexts that use it. Null: a cache
    /// of the context's own.
    session_cache* sessions = nullptr;

    /// Called with the peer's certificate and `verify_data`, also when a session is resumed, on the
    /// thread of the connection. With `verify`: after the verification has succeeded, and false
    /// refuses nevertheless. Without: the error says what a verification of the chain would have
    /// found, and the function alone decides. Must not throw.
    bool (*verify_peer)(const peer_certificate& peer, std::error_code found, void* data) = nullptr;
    void* verify_data = nullptr;
};

/// Whether a server asks its clients for a certificate.
enum class client_certificate : std::uint8_t {
    none,
    /// A client without one is served; one that has one must have a valid one.
    optional,
    required,
};

/// A certificate of a server, with its chain and its key, in PEM: each from a file or as text.
struct certificate_files {
    std::string_view chain_file = {};
    std::string_view key_file = {};
    std::string_view chain_pem = {};
    std::string_view key_pem = {};
    std::string_view password = {};           ///< Of the key.
    std::string_view ocsp_response_file = {}; ///< In DER, stapled.
};

/// How a server identifies itself, and verifies clients. The texts are views, which
/// context::server() copies.
struct server_config {
    /// @name Identity
    /// The certificate, followed by its chain, and the key: each from a file or as text, in PEM.
    /// @{
    std::string_view certificate_chain_file = {};
    std::string_view private_key_file = {};
    std::string_view certificate_chain_pem = {};
    std::string_view private_key_pem = {};
    std::string_view private_key_password = {};
    /// @}

    /// Certificates for other names. The client's SNI chooses: the first one with exactly that
    /// name, or else with a matching wildcard. If none matches, or there is no SNI, the one above.
    /// Certificates with keys of different kinds for the same names complete each other.
    std::span<const certificate_files> more_certificates = {};

    /// Whether clients are asked for a certificate, which needs `client_ca_file` or
    /// `client_ca_pem`: the system's store never vouches for clients.
    client_certificate ask = client_certificate::none;
    std::string_view client_ca_file = {};
    std::string_view client_ca_pem = {};
    /// Revocation lists, as client_config::crl_file.
    std::string_view client_crl_file = {};

    version minimum = version::tls_1_2;
    /// @name Algorithms
    /// As in client_config.
    /// @{
    std::string_view ciphers = {};
    std::string_view cipher_suites = {};
    std::string_view groups = {};
    /// @}

    /// ALPN: the application protocols that are spoken, in order of preference. A client that
    /// offers others only is refused; one that offers none is served.
    std::span<const std::string_view> alpn = {};

    /// Whether clients may resume sessions, with tickets that only this context can read: their
    /// keys are shared by all loops. The first handshake after `ticket_lifetime` makes a new key,
    /// and a key opens tickets for two lifetimes.
    bool session_tickets = true;
    std::chrono::seconds ticket_lifetime = std::chrono::hours{2};

    /// An OCSP response in DER for the certificate above, stapled for clients that ask.
    std::string_view ocsp_response_file = {};

    /// As in client_config.
    std::string_view key_log_file = {};
    unsigned max_chain_depth = 10;
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
