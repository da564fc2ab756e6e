#include <simplenet/tls/peer_certificate.hpp>

#include "tls/openssl.hpp"

#include <simplenet/ip/ip_address.hpp>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace simplenet::v0::tls {

namespace {

using detail::bio_ptr;
using detail::freed_by;

bio_ptr growing_memory() {
    bio_ptr made{BIO_new(BIO_s_mem())};
    if (!made) throw std::bad_alloc{};
    return made;
}

std::string content_of(BIO* memory) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    return {data, static_cast<std::size_t>(size)};
}

std::string text_of(const X509_NAME* name) {
    const bio_ptr memory = growing_memory();
    // Escaped, so that nothing in it looks like a separator.
    if (X509_NAME_print_ex(memory.get(), name, 0, XN_FLAG_RFC2253) < 0) throw std::bad_alloc{};
    return content_of(memory.get());
}

std::chrono::system_clock::time_point time_of(const ASN1_TIME* when) {
    std::tm parts{};
    if (ASN1_TIME_to_tm(when, &parts) != 1) return {};
    return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::string hexadecimal(const unsigned char* data, std::size_t size) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (std::size_t each = 0; each < size; ++each) {
        text += digits[data[each] >> 4U];
        text += digits[data[each] & 15U];
    }
    return text;
}

/// Empty: no address.
std::string address_text(std::span<const unsigned char> bytes) {
    const auto content = std::as_bytes(bytes);
    if (content.size() == 4) return ip_address::from_bytes(content.first<4>()).to_string();
    if (content.size() == 16) return ip_address::from_bytes(content.first<16>()).to_string();
    return {};
}

} // namespace

peer_certificate::peer_certificate(x509_st* certificate) noexcept
    : certificate_{certificate} {}

peer_certificate::peer_certificate(const peer_certificate& other) noexcept
    : certificate_{other.certificate_} {
    if (certificate_ != nullptr) X509_up_ref(certificate_);
}

peer_certificate::peer_certificate(peer_certificate&& other) noexcept
    : certificate_{std::exchange(other.certificate_, nullptr)} {}

peer_certificate& peer_certificate::operator=(peer_certificate other) noexcept {
    std::swap(certificate_, other.certificate_);
    return *this;
}

peer_certificate::~peer_certificate() {
    X509_free(certificate_);
}

std::string peer_certificate::subject() const {
    return text_of(X509_get_subject_name(certificate_));
}

std::string peer_certificate::issuer() const {
    return text_of(X509_get_issuer_name(certificate_));
}

std::chrono::system_clock::time_point peer_certificate::not_before() const {
    return time_of(X509_get0_notBefore(certificate_));
}

std::chrono::system_clock::time_point peer_certificate::not_after() const {
    return time_of(X509_get0_notAfter(certificate_));
}

std::vector<std::string> peer_certificate::names() const {
    std::vector<std::string> names;
    ERR_clear_error();
    const std::unique_ptr<GENERAL_NAMES, freed_by<GENERAL_NAMES_free>> all{
        static_cast<GENERAL_NAMES*>(
            X509_get_ext_d2i(certificate_, NID_subject_alt_name, nullptr, nullptr))};
    if (!all && detail::lacks_memory(ERR_peek_error())) throw std::bad_alloc{};
    if (!all) return names;
    for (int each = 0; each < sk_GENERAL_NAME_num(all.get()); ++each) {
        const GENERAL_NAME& entry = *sk_GENERAL_NAME_value(all.get(), each);
        if (entry.type != GEN_DNS && entry.type != GEN_IPADD) continue;
        const ASN1_STRING* const value =
            entry.type == GEN_DNS ? entry.d.dNSName : entry.d.iPAddress;
        const unsigned char* const data = ASN1_STRING_get0_data(value);
        const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
        std::string name = entry.type == GEN_DNS
                               ? std::string{reinterpret_cast<const char*>(data), size}
                               : address_text({data, size});
        const bool is_usable = !name.empty() && name.find('\0') == std::string::npos;
        if (is_usable) names.push_back(std::move(name));
    }
    return names;
}

std::string peer_certificate::fingerprint_sha256() const {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (X509_digest(certificate_, EVP_sha256(), digest.data(), &size) != 1) throw std::bad_alloc{};
    return hexadecimal(digest.data(), size);
}

std::string peer_certificate::pem() const {
    const bio_ptr memory = growing_memory();
    if (PEM_write_bio_X509(memory.get(), certificate_) != 1) throw std::bad_alloc{};
    return content_of(memory.get());
}

std::string peer_certificate::serial() const {
    const bio_ptr memory = growing_memory();
    if (i2a_ASN1_INTEGER(memory.get(), X509_get0_serialNumber(certificate_)) < 0) {
        throw std::bad_alloc{};
    }
    return content_of(memory.get());
}

} // namespace simplenet::v0::tls
