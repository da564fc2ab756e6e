#pragma once
// tls::connection_info: what a handshake has agreed on. Layer tls.

#include <simplenet/tls/config.hpp>
#include <simplenet/tls/peer_certificate.hpp>

#include <optional>
#include <string>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// What a handshake has agreed on.
struct connection_info {
    /// The version of TLS that both sides speak.
    tls::version version = tls::version::tls_1_3;
    std::string cipher;      ///< The cipher suite, by its name in OpenSSL.
    std::string alpn;        ///< The application protocol; empty: none was agreed on.
    std::string server_name; ///< The SNI, of either side; empty: none.
    bool resumed = false;    ///< From an earlier session: no certificates were exchanged.
    /// The peer's; when a session is resumed, that of the first handshake.
    std::optional<tls::peer_certificate> peer_certificate;
    /// What the verification of its chain and its name has found. Not zero only without
    /// client_config::verify.
    std::error_code verification;
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
