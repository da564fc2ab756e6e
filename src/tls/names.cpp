#include "tls/names.hpp"

#include <simplenet/ip/ip_address.hpp>

#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace simplenet::v0::tls::detail {

namespace {

/// Empty: no address.
std::string address_text(std::span<const unsigned char> bytes) {
    const auto content = std::as_bytes(bytes);
    if (content.size() == 4) return ip_address::from_bytes(content.first<4>()).to_string();
    if (content.size() == 16) return ip_address::from_bytes(content.first<16>()).to_string();
    return {};
}

} // namespace

std::string in_lower_case(std::string name) {
    std::ranges::transform(name, name.begin(), [](char each) {
        return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
    });
    return name;
}

std::vector<std::string> names_of(const X509& certificate, alternative_names which) {
    ERR_clear_error();
    const std::unique_ptr<GENERAL_NAMES, freed_by<GENERAL_NAMES_free>> all{
        static_cast<GENERAL_NAMES*>(
            X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
    if (!all && lacks_memory(ERR_peek_error())) throw std::bad_alloc{};
    std::vector<std::string> names;
    for (int each = 0; each < sk_GENERAL_NAME_num(all.get()); ++each) { // -1: there are none
        const GENERAL_NAME& entry = *sk_GENERAL_NAME_value(all.get(), each);
        const bool is_dns = entry.type == GEN_DNS;
        const bool is_wanted =
            is_dns || (which == alternative_names::all && entry.type == GEN_IPADD);
        if (!is_wanted) continue;
        const ASN1_STRING* const value = is_dns ? entry.d.dNSName : entry.d.iPAddress;
        const unsigned char* const data = ASN1_STRING_get0_data(value);
        const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
        std::string name = is_dns ? std::string{reinterpret_cast<const char*>(data), size}
                                  : address_text({data, size});
        const bool is_usable = !name.empty() && name.find('\0') == std::string::npos;
        if (is_usable) names.push_back(std::move(name));
    }
    return names;
}

} // namespace simplenet::v0::tls::detail
