#pragma once
// httpd::authenticator: asks for a user and a password, and remembers who has given the right ones.

#include "httpd/guard/password_file.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/http/basic_credentials.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <cstdint>
#include <memory>

namespace httpd {

/// Shared by all loops; any thread.
///
/// A hash takes as long as its maker wanted, on one of 4 threads that do nothing else. Credentials
/// that were right are remembered for a minute, at most 1024 of them, by a keyed digest
/// (HMAC-SHA-256 with a secret of this process): neither they nor anything from which they could be
/// guessed offline stays in memory. Wrong ones are not: whoever guesses pays for each guess.
///
/// Requests wait for a thread in the order in which they came, at most 4 from one address (a
/// network of 64 bits for IPv6), so that a client that guesses waits behind itself, and 256 in all;
/// further ones are told to come again. Requests with credentials that are being checked wait for
/// that, without a thread, and are not counted: those of a page that a browser asks for at once.
class authenticator {
public:
    explicit authenticator(password_file users);

    enum class verdict : std::uint8_t { right, wrong, busy };
    /// @param from Whose request it is.
    [[nodiscard]] simplenet::task<verdict> check(const simplenet::http::basic_credentials& given,
                                                 const simplenet::ip_address& from);
    /// Whether another one for `users` would do the same.
    [[nodiscard]] bool is_for(const password_file& users) const noexcept;

private:
    class memory;

    // Belongs to computations too, which go on when their request is stopped.
    const std::shared_ptr<memory> memory_;
};

} // namespace httpd
