#include <simplenet/tls/peer_certificate.hpp>

#include "tls/names.hpp"
#include "tls/openssl.hpp"

#include <openssl/pem.h>

#include <array>
#include <ctime>
#include <new>
#include <string_view>
#include <utility>

namespace simplenet::v0::tls {

namespace {

using detail::bio_ptr;

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
    return detail::names_of(*certificate_, detail::alternative_names::all);
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
