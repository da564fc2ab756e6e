#pragma once
// What certificates say about themselves. Used by the checks of a configuration, and for the status
// page. Only where the component tls is built.

#include "httpd/config/configuration.hpp"

#include <chrono>
#include <expected>
#include <string>
#include <vector>

namespace httpd {

struct certificate_facts {
    std::chrono::sys_seconds valid_from;
    std::chrono::sys_seconds valid_until;
    /// Names of hosts that the certificate is for, in lower case; addresses as text.
    std::vector<std::string> names;
    std::string key_kind; ///< Such as "RSA" or "EC".
};

/// The first certificate of a file in PEM, or why there is none. Blocks.
[[nodiscard]] std::expected<certificate_facts, std::string> facts_of(const std::string& file);

/// What is wrong with them as a whole, in words for people; empty if they can be used. Blocks.
[[nodiscard]] std::string wrong_tls(const tls_options& options);

} // namespace httpd
