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
    /// Trusted certificates in PEM, from a file, from a directory that openssl-rehash(1) has
    /// prepared, and as text. All that are given are trusted, and the system's store is not. If
    /// none is given, the system's store is trusted.
    /// @{
    std::string_view ca_file = {};
    std::string_view ca_directory = {};
    std::string_view ca_pem = {};
    /// @}

    /// Off: every certificate is accepted, so anybody on the way can read and change everything.
    /// Only for tests, and for programs whose `verify_peer` decides. docs/usage/tls-security.md
    /// lists what is turned off.
    bool verify = true;
    /// The oldest version that is accepted. The newest is always 1.3.
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

    /// ALPN: the application protocols that are offered, in order of preference. Each has 1 to 255
    /// bytes (RFC 7301, section 3.1).
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
    /// If `key_log_file` is empty: uses the file that the environment variable SSLKEYLOGFILE names,
    /// if secure_getenv(3) returns it. `key_log_file` takes precedence.
    bool key_log_from_environment = false;

    /// The most certificates between the peer's and the root.
    unsigned max_chain_depth = 10;

    /// Where sessions are kept for resumption. Borrowed: must outlive the contexts that use it, and
    /// their streams. Null: a cache of the context's own.
    session_cache* sessions = nullptr;

    /// Called with the peer's certificate, also when a session is resumed, on the thread of the
    /// connection. Must not throw.
    ///
    /// With `verify`: called after the verification has succeeded. Without: the function alone
    /// decides, and `found` says what the verification of the chain and the name has found.
    /// If it returns false, the handshake fails with `errc::certificate_invalid`, whatever `found`
    /// is.
    bool (*verify_peer)(const peer_certificate& peer, std::error_code found, void* data) = nullptr;
    /// Passed to `verify_peer`. Borrowed: must outlive the contexts that use it, and their streams.
    void* verify_data = nullptr;
};

/// Whether a server asks its clients for a certificate.
enum class client_certificate : std::uint8_t {
    /// Clients are not asked.
    none,
    /// A client without one is served. If a client sends one, it must be valid.
    optional,
    /// A client without one is refused with `errc::certificate_required`. If a client sends one, it
    /// must be valid.
    required,
};

/// A certificate of a server, with its chain and its key, in PEM. Exactly one of `chain_file` and
/// `chain_pem` must be given, and exactly one of `key_file` and `key_pem`; otherwise
/// context::server() fails with `errc::bad_configuration`.
struct certificate_files {
    /// The server's certificate, followed by those of its issuers. The root may be missing (RFC
    /// 8446, section 4.4.2).
    std::string_view chain_file = {};
    std::string_view key_file = {};  ///< The private key of the certificate.
    std::string_view chain_pem = {}; ///< The text that would be in `chain_file`.
    std::string_view key_pem = {};   ///< The text that would be in `key_file`.
    std::string_view password = {};  ///< Decrypts the key. Empty: the key must not be encrypted.
    /// An OCSP response for the certificate, in DER, for clients that ask (RFC 6066, section 8).
    /// Empty: none.
    std::string_view ocsp_response_file = {};
};

/// How a server identifies itself, and verifies clients. The texts are views, which
/// context::server() copies.
struct server_config {
    /// @name Identity
    /// The certificate that clients get by default, and its key, as in certificate_files.
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
    /// Certificates in PEM, from a file and as text. Each of them is trusted to issue certificates
    /// of clients. Their names are sent to the clients that are asked.
    std::string_view client_ca_file = {};
    std::string_view client_ca_pem = {}; ///< See `client_ca_file`.
    /// Revocation lists, as client_config::crl_file.
    std::string_view client_crl_file = {};

    /// The oldest version that is accepted. The newest is always 1.3.
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
    /// 1 s to 7 days (RFC 8446, section 4.6.1).
    std::chrono::seconds ticket_lifetime = std::chrono::hours{2};

    /// As in certificate_files, for the default certificate.
    std::string_view ocsp_response_file = {};

    /// As in client_config.
    std::string_view key_log_file = {};
    /// The most certificates between a client's and the root.
    unsigned max_chain_depth = 10;
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
