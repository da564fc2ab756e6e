#include "tls/failures.hpp"

#include "tls/openssl.hpp"

#include <simplenet/tls/errc.hpp>

#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

namespace simplenet::v0::tls::detail {

namespace {

errc certificate_error(long verification) noexcept {
    switch (verification) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return errc::certificate_expired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return errc::certificate_not_yet_valid;
    case X509_V_ERR_CERT_REVOKED:
        return errc::certificate_revoked;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
    case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
    case X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD:
    case X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
    case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
    case X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
    case X509_V_ERR_DIFFERENT_CRL_SCOPE:
    case X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
        return errc::certificate_revocation_unknown;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
    case X509_V_ERR_EMAIL_MISMATCH:
        return errc::certificate_host_mismatch;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return errc::certificate_self_signed;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        return errc::certificate_untrusted_issuer;
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_INVALID_PURPOSE:
    case X509_V_ERR_CERT_REJECTED:
    case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
    case X509_V_ERR_KEYUSAGE_NO_DIGITAL_SIGNATURE:
        return errc::certificate_purpose;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
        return errc::certificate_weak;
    case X509_V_ERR_CERT_CHAIN_TOO_LONG:
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
        return errc::certificate_chain_too_long;
    default:
        return errc::certificate_invalid;
    }
}

errc protocol_error(int reason, bool ready, bool heard_records) noexcept {
    switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return errc::certificate_required;
    case SSL_R_CA_KEY_TOO_SMALL:
    case SSL_R_CA_MD_TOO_WEAK:
    case SSL_R_EE_KEY_TOO_SMALL:
        return errc::certificate_weak;
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
        return errc::not_tls;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_DATA_LENGTH_TOO_LONG:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_RECORD_TOO_SMALL:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_UNEXPECTED_RECORD:
    case SSL_R_LENGTH_TOO_SHORT:
    case SSL_R_LENGTH_TOO_LONG:
        return heard_records ? errc::record_invalid : errc::not_tls;
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_TOO_MANY_KEY_UPDATES:
    case SSL_R_TOO_MANY_WARN_ALERTS:
    case SSL_R_UNKNOWN_ALERT_TYPE:
    case SSL_R_APP_DATA_IN_HANDSHAKE:
    case SSL_R_BAD_CHANGE_CIPHER_SPEC:
        return errc::record_invalid;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_VERSION_TOO_HIGH:
    case SSL_R_UNKNOWN_SSL_VERSION:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_INAPPROPRIATE_FALLBACK:
    case SSL_R_TLSV1_ALERT_INAPPROPRIATE_FALLBACK:
        return errc::no_common_version;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_CIPHERS_AVAILABLE:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_GROUPS:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_UNSUPPORTED_ELLIPTIC_CURVE:
        return errc::no_common_cipher;
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_AD_REASON_OFFSET + TLS1_AD_NO_APPLICATION_PROTOCOL:
        return errc::no_application_protocol;
    case SSL_R_NO_RENEGOTIATION:
    case SSL_R_TLSV1_ALERT_NO_RENEGOTIATION:
        return errc::renegotiation_refused;
    default:
        if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
            return errc::peer_alert;
        }
        return ready ? errc::record_invalid : errc::handshake_failed;
    }
}

} // namespace

std::error_code verification_error(long verification) noexcept {
    if (verification == X509_V_OK) return {};
    if (verification == X509_V_ERR_OUT_OF_MEM) {
        return std::make_error_code(std::errc::not_enough_memory);
    }
    return make_error_code(certificate_error(verification));
}

std::error_code connection_error(unsigned long entry, bool ready, bool heard_records,
                                 long verification) noexcept {
    const int reason = ERR_GET_REASON(entry);
    if (lacks_memory(entry)) return std::make_error_code(std::errc::not_enough_memory);
    if (ERR_GET_LIB(entry) != ERR_LIB_SSL) {
        return make_error_code(ready ? errc::record_invalid : errc::handshake_failed);
    }
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        // The verification itself may not have begun.
        const bool is_known = verification != X509_V_OK;
        return is_known ? verification_error(verification)
                        : make_error_code(errc::certificate_invalid);
    }
    return make_error_code(protocol_error(reason, ready, heard_records));
}

} // namespace simplenet::v0::tls::detail
