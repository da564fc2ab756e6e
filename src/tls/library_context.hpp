#pragma once
// library_context: an OSSL_LIB_CTX for one context. Layer tls, private.

#include <simplenet/core/abi.hpp>

#include <openssl/types.h>

namespace simplenet::v0::tls::detail {

/// An OpenSSL library context that nobody else uses meanwhile, without the settings of the global
/// configuration file.
///
/// Never freed: OpenSSL keeps random generators of each thread that has used it, which OpenSSL
/// could free only on those threads (OPENSSL_thread_stop_ex(3)). A returned one, which is as good
/// as new because no settings are made in it, serves the next context.
class library_context {
public:
    /// Throws std::bad_alloc.
    library_context();
    library_context(const library_context&) = delete;
    library_context& operator=(const library_context&) = delete;
    ~library_context();

    [[nodiscard]] OSSL_LIB_CTX* get() const noexcept { return context_; }

private:
    OSSL_LIB_CTX* context_;
};

} // namespace simplenet::v0::tls::detail
