#include "httpd/config/certificates.hpp"

#include "httpd/config/syntax.hpp"

#if SIMPLENET_HTTPD_TLS

#include <simplenet/tls.hpp>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace httpd {
namespace {

template <auto Free>
struct freed_by {
    void operator()(auto* object) const noexcept { Free(object); }
};
using x509_handle = std::unique_ptr<::X509, freed_by<&::X509_free>>;
using names_handle = std::unique_ptr<::GENERAL_NAMES, freed_by<&::GENERAL_NAMES_free>>;
using file_handle = std::unique_ptr<std::FILE, freed_by<&std::fclose>>;

std::chrono::sys_seconds time_of(const ::ASN1_TIME* time) {
    std::tm parts{};
    if (::ASN1_TIME_to_tm(time, &parts) != 1) return {};
    return std::chrono::sys_seconds{std::chrono::seconds{::timegm(&parts)}};
}

std::string_view text_of(const ::ASN1_STRING* text) {
    return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
            static_cast<std::size_t>(::ASN1_STRING_length(text))};
}

std::string address_of(std::string_view bytes) {
    const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
    using simplenet::ip_address;
    if (bytes.size() == 4)
        return ip_address::from_bytes(std::span<const std::byte, 4>{data, 4}).to_string();
    if (bytes.size() == 16)
        return ip_address::from_bytes(std::span<const std::byte, 16>{data, 16}).to_string();
    return {};
}

std::vector<std::string> names_of(const ::X509* certificate) {
    std::vector<std::string> names;
    const names_handle list{static_cast<::GENERAL_NAMES*>(
        ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
    const int count = list ? sk_GENERAL_NAME_num(list.get()) : 0;
    for (int i = 0; i < count; ++i) {
        const ::GENERAL_NAME* const name = sk_GENERAL_NAME_value(list.get(), i);
        if (name->type == GEN_DNS) names.push_back(normal_host(text_of(name->d.dNSName)));
        if (name->type == GEN_IPADD) names.push_back(address_of(text_of(name->d.iPAddress)));
    }
    return names;
}

} // namespace

std::expected<certificate_facts, std::string> facts_of(const std::string& file) {
    const file_handle stream{std::fopen(file.c_str(), "re")};
    if (!stream) return std::unexpected{std::system_category().message(errno)};
    const x509_handle read{::PEM_read_X509(stream.get(), nullptr, nullptr, nullptr)};
    if (!read) return std::unexpected{"has no certificate in PEM"};

    certificate_facts facts;
    facts.valid_from = time_of(::X509_get0_notBefore(read.get()));
    facts.valid_until = time_of(::X509_get0_notAfter(read.get()));
    facts.names = names_of(read.get());
    if (const ::EVP_PKEY* const key = ::X509_get0_pubkey(read.get()))
        facts.key_kind = ::EVP_PKEY_get0_type_name(key);
    return facts;
}

std::string wrong_tls(const tls_options& options) {
    std::vector<simplenet::tls::certificate_files> more;
    for (const certificate& each : options.certificates)
        more.push_back({.chain_file = each.certificate, .key_file = each.key});
    more.erase(more.begin());

    simplenet::tls::server_config config;
    config.certificate_chain_file = options.certificates.front().certificate;
    config.private_key_file = options.certificates.front().key;
    config.more_certificates = more;
    if (options.minimum == tls_version::tls_1_3) config.minimum = simplenet::tls::version::tls_1_3;
    config.client_ca_file = options.client_ca;
    if (!options.client_ca.empty()) config.ask = simplenet::tls::client_certificate::required;
    std::string detail;
    const auto made = simplenet::tls::context::server(config, &detail);
    if (made) return {};
    if (made.error() == simplenet::tls::errc::key_mismatch)
        return "the key does not belong to the certificate (" + detail + ')';
    return detail.empty() ? made.error().message() : detail;
}

} // namespace httpd

#else

namespace httpd {

std::expected<certificate_facts, std::string> facts_of(const std::string&) {
    return std::unexpected{"cannot be read: this program was built without TLS"};
}

std::string wrong_tls(const tls_options&) {
    return "this program was built without TLS";
}

} // namespace httpd

#endif
