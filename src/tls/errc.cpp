#include <simplenet/tls/errc.hpp>

#include <string>

namespace simplenet::v0::tls {

namespace {

class category final : public std::error_category {
public:
    const char* name() const noexcept override { return "simplenet.tls"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
        case errc::truncated:
            return "the connection ended without close_notify";
        case errc::certificate_expired:
            return "certificate has expired";
        case errc::certificate_not_yet_valid:
            return "certificate is not yet valid";
        case errc::certificate_revoked:
            return "certificate was revoked";
        case errc::certificate_revocation_unknown:
            return "no current revocation list for a certificate";
        case errc::certificate_host_mismatch:
            return "certificate is for another host";
        case errc::certificate_self_signed:
            return "certificate is self-signed";
        case errc::certificate_untrusted_issuer:
            return "certificate of an unknown issuer";
        case errc::certificate_purpose:
            return "certificate may not be used for this purpose";
        case errc::certificate_weak:
            return "certificate has a weak key or signature";
        case errc::certificate_chain_too_long:
            return "certificate chain is too long";
        case errc::certificate_invalid:
            return "certificate was not accepted";
        case errc::certificate_required:
            return "a certificate is required";
        case errc::no_common_version:
            return "no TLS version in common";
        case errc::no_common_cipher:
            return "no cipher suite in common";
        case errc::no_application_protocol:
            return "no application protocol in common";
        case errc::peer_alert:
            return "the peer refused";
        case errc::not_tls:
            return "the peer does not speak TLS";
        case errc::handshake_failed:
            return "TLS handshake failed";
        case errc::renegotiation_refused:
            return "renegotiation refused";
        case errc::record_invalid:
            return "invalid TLS record";
        case errc::key_mismatch:
            return "private key does not belong to the certificate";
        case errc::bad_configuration:
            return "bad TLS configuration";
        }
        return "unknown TLS error " + std::to_string(value);
    }

    std::error_condition default_error_condition(int value) const noexcept override {
        switch (static_cast<errc>(value)) {
        case errc::no_common_version:
        case errc::no_common_cipher:
        case errc::no_application_protocol:
        case errc::not_tls:
        case errc::handshake_failed:
        case errc::renegotiation_refused:
        case errc::record_invalid:
            return std::make_error_condition(std::errc::protocol_error);
        case errc::key_mismatch:
        case errc::bad_configuration:
            return std::make_error_condition(std::errc::invalid_argument);
        default:
            return {value, *this};
        }
    }
};

} // namespace

const std::error_category& error_category() noexcept {
    static const category instance;
    return instance;
}

} // namespace simplenet::v0::tls
