#pragma once
// Reading certificates, keys, revocation lists and OCSP responses. Layer tls, private.

#include "tls/material.hpp"
#include "tls/openssl.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::tls::detail {

/// The content of a file of at most 64 MiB; it may be a key. Does not wait for somebody to open a
/// FIFO: one that nobody writes to is empty. Error: that of open(2) or read(2).
[[nodiscard]] loaded<secret> read_file(const std::string& path);

/// Calls `use(text, where)` with the text of `from`, or of its file. `where` is for messages.
template <class Use>
auto with_text(const source& from, const char* what, Use use)
    -> decltype(use(std::string_view{}, std::string{})) {
    if (from.file.empty()) return use(from.text.view(), std::string{what});
    const loaded<secret> content = read_file(from.file);
    if (!content) return std::unexpected{content.error()};
    return use(content->view(), from.file);
}

/// All certificates in PEM; at least one.
[[nodiscard]] loaded<std::vector<certificate_ptr>>
read_certificates(OSSL_LIB_CTX* library, std::string_view text, const std::string& where);
/// The private key in PEM.
[[nodiscard]] loaded<key_ptr> read_key(OSSL_LIB_CTX* library, std::string_view text,
                                       const secret& password, const std::string& where);
/// All revocation lists in PEM; at least one.
[[nodiscard]] loaded<std::vector<crl_ptr>>
read_revocations(OSSL_LIB_CTX* library, std::string_view text, const std::string& where);

/// That `text` is a response in DER that says something about a certificate.
[[nodiscard]] loaded<void> check_ocsp_response(std::string_view text, const std::string& where);

/// An error number of a call on a file or directory, with its path.
[[nodiscard]] std::unexpected<bad_material> system_failure(int number, const std::string& path);
/// A bad configuration: `what` and the first error of OpenSSL. Throws std::bad_alloc if OpenSSL
/// lacked memory.
[[nodiscard]] std::unexpected<bad_material> bad(const std::string& what);

} // namespace simplenet::v0::tls::detail
