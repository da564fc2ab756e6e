#pragma once
// The TLS of a listener, made from its part of the configuration. Only where the component tls is
// built.

#include "httpd/config/configuration.hpp"

#include <simplenet/tls/context.hpp>

namespace httpd {

/// Reads the files. Blocks.
///
/// Throws std::runtime_error if they cannot be used; what() says which, and why.
[[nodiscard]] simplenet::tls::context make_context(const tls_options& from);

} // namespace httpd
