#pragma once
// The TLS of a listener, made from its part of the configuration. Only where the component tls is
// built.

#include "httpd/config/configuration.hpp"

#include <simplenet/tls/context.hpp>

#include <string>

namespace httpd {

/// Reads the files. Blocks.
///
/// Throws std::runtime_error if they cannot be used; what() says which, and why.
[[nodiscard]] simplenet::tls::context make_context(const tls_options& from);

/// What the file `client_ca` holds now: empty if there is none, or if it cannot be read.
[[nodiscard]] std::string issuers_of(const tls_options& from);

} // namespace httpd
