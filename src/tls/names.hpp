#pragma once
// Names of hosts in certificates and in SNI. Layer tls, private.

#include "tls/openssl.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace simplenet::v0::tls::detail {

/// The letters of ASCII in lower case.
[[nodiscard]] std::string in_lower_case(std::string name);

enum class alternative_names : std::uint8_t { of_dns, all };

/// The alternative names of a certificate's subject: DNS names, and with `all` addresses as text.
/// Names that contain a NUL are left out. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> names_of(const X509& certificate, alternative_names which);

} // namespace simplenet::v0::tls::detail
