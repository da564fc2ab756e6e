#pragma once
// Owners of OpenSSL's objects, and its errors as text. Layer tls, private.

#include <simplenet/core/abi.hpp>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::tls::detail {

template <auto Free>
struct freed_by {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};

using bio_ptr = std::unique_ptr<BIO, freed_by<BIO_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using session_ptr = std::unique_ptr<SSL_SESSION, freed_by<SSL_SESSION_free>>;
using ssl_context_ptr = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using crl_ptr = std::unique_ptr<X509_CRL, freed_by<X509_CRL_free>>;

/// Whether an entry of OpenSSL's queue says that memory was missing.
[[nodiscard]] inline bool lacks_memory(unsigned long entry) noexcept {
    return ERR_GET_REASON(entry) == ERR_R_MALLOC_FAILURE;
}

/// Before a call whose outcome SSL_get_error(3) tells: errors that others have left in OpenSSL's
/// queue of this thread would pass for its own. Emptying an empty queue costs twice as much as
/// asking.
inline void forget_errors() noexcept {
    if (ERR_peek_error() != 0) ERR_clear_error();
}

/// The first error in OpenSSL's queue of this thread as text; empty: none.
[[nodiscard]] inline std::string first_error() {
    const unsigned long code = ERR_peek_error();
    if (code == 0) return {};
    const char* const reason = ERR_reason_error_string(code);
    return reason != nullptr ? reason : "error " + std::to_string(code);
}

/// Text that is overwritten before its memory is freed: keys and passwords.
class secret {
public:
    secret() noexcept = default;
    secret(secret&&) noexcept = default;
    secret& operator=(secret&&) = delete;
    ~secret() { wipe(); }

    void assign(std::string_view text) {
        wipe();
        text_.assign(text.begin(), text.end());
    }
    /// A longer text may move, and leaves no copy behind.
    void resize(std::size_t size) {
        if (size > text_.capacity()) {
            std::vector<char> larger;
            larger.reserve(std::max(size, 2 * text_.capacity()));
            larger.assign(text_.begin(), text_.end());
            wipe();
            text_.swap(larger);
        }
        text_.resize(size);
    }
    [[nodiscard]] char* data() noexcept { return text_.data(); }
    [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
    [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), text_.size()}; }
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }

private:
    void wipe() noexcept {
        if (!text_.empty()) OPENSSL_cleanse(text_.data(), text_.size());
    }

    std::vector<char> text_; // moving it leaves no copy behind, unlike a std::string
};

} // namespace simplenet::v0::tls::detail
