#pragma once
// What OpenSSL's errors mean. Layer tls, private.

#include <simplenet/core/abi.hpp>

#include <system_error>

namespace simplenet::v0::tls::detail {

/// Of X509_STORE_CTX_get_error(3); zero: X509_V_OK.
[[nodiscard]] std::error_code verification_error(long verification) noexcept;

/// Of an entry of OpenSSL's error queue. `ready`: the handshake was complete. `verification` is
/// that of the connection.
[[nodiscard]] std::error_code connection_error(unsigned long entry, bool ready, bool heard_records,
                                               long verification) noexcept;

} // namespace simplenet::v0::tls::detail
