#pragma once
// http::basic_credentials: who a request says it is, by HTTP's basic authentication. Layer http.

#include <simplenet/http/fields.hpp>

#include <optional>
#include <string>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// A name and a password (RFC 7617). Only TLS hides them on their way.
struct basic_credentials {
    std::string user; ///< Without a colon.
    std::string password;

    /// Those of the Authorization field. None: there is no such field, or more than one, or it is
    /// of another scheme or malformed; also if the name or the password has control characters.
    /// Allocates. Any thread.
    ///
    /// Answer 401 with `WWW-Authenticate: Basic realm="..."` then. Compare passwords in constant
    /// time, or better their hashes: crypt(3).
    [[nodiscard]] static std::optional<basic_credentials> of(const fields& asked);
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
