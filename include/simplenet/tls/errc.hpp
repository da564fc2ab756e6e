#pragma once
// tls::errc: what can go wrong with TLS that errno cannot express. Layer tls.

#include <simplenet/core/abi.hpp>

#include <system_error>
#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// Why a handshake or a connection failed. docs/usage/tls-errors.md says what to do about each.
enum class errc {
    /// The transport ended without close_notify: somebody may have cut the data.
    truncated = 1,
    /// A certificate of the peer's chain is past its end.
    certificate_expired,
    /// A certificate of the peer's chain is not valid yet; or the clock of this machine is wrong.
    certificate_not_yet_valid,
    /// A certificate revocation list has a certificate of the peer's chain.
    certificate_revoked,
    /// There is no current revocation list for a certificate of the peer's chain.
    certificate_revocation_unknown,
    /// The certificate is for another name or address.
    certificate_host_mismatch,
    /// The peer's certificate vouches for itself.
    certificate_self_signed,
    /// The chain does not end at a trusted certificate.
    certificate_untrusted_issuer,
    /// A certificate may not be used for this: a client's for a server, a server's for an issuer.
    certificate_purpose,
    /// A key or a signature in the chain is too weak.
    certificate_weak,
    /// The chain is longer than `max_chain_depth`.
    certificate_chain_too_long,
    /// The chain has another defect; or client_config::verify_peer refused the certificate,
    /// whatever the verification had found.
    certificate_invalid,
    /// The server requires a certificate of the client, and there was none.
    certificate_required,
    /// The peer speaks only older or newer versions of TLS.
    no_common_version,
    /// No cipher suite, group or signature algorithm in common.
    no_common_cipher,
    /// ALPN: no protocol in common.
    no_application_protocol,
    /// The peer refused, with an alert that stream::error_detail() names.
    peer_alert,
    /// The peer does not speak TLS.
    not_tls,
    /// The handshake failed for another reason.
    handshake_failed,
    /// The peer asked for a renegotiation.
    renegotiation_refused,
    /// A record was not authentic, too long or out of place; or the peer sent many that carry
    /// nothing.
    record_invalid,
    /// The private key does not belong to the certificate.
    key_mismatch,
    /// The configuration is incomplete, contradictory, or not what OpenSSL can read.
    bad_configuration,
};

/// The category of `errc`, named "simplenet.tls". Any thread.
[[nodiscard]] const std::error_category& error_category() noexcept;

/// Lets a `std::error_code` be made of, and compared with, an `errc`. Any thread.
[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

} // namespace simplenet::v0::tls

template <>
struct std::is_error_code_enum<simplenet::tls::errc> : std::true_type {};

#pragma GCC visibility pop
