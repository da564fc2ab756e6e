#pragma once
// Makes an SSL_CTX with the settings of a context, and the functions that OpenSSL calls. Layer tls,
// private.

#include "tls/material.hpp"
#include "tls/openssl.hpp"

namespace simplenet::v0::tls::detail {

/// Everything but certificates and trust. `of` outlives it.
[[nodiscard]] loaded<ssl_context_ptr> make_ssl_context(const material& of);

} // namespace simplenet::v0::tls::detail
