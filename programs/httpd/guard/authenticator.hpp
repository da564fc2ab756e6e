#pragma once
// httpd::authenticator: asks for a user and a password, and remembers who has given the right ones.

#include "httpd/guard/password_file.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/http/basic_credentials.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace httpd {

/// Shared by all loops; any thread.
///
/// A hash takes as long as its maker wanted, on a thread of run_blocking(). Credentials that were
/// right are remembered for a minute, at most 1024 of them, by a keyed digest (HMAC-SHA-256 with a
/// secret of this process): neither they nor anything from which they could be guessed offline
/// stays in memory. Wrong ones are not: whoever guesses pays for each guess. At most 4 hashes are
/// computed at once, half of the threads of run_blocking() on a small machine, so that a crowd that
/// guesses does not take them from the files; further requests are told to come again.
class authenticator {
public:
    explicit authenticator(password_file users);

    enum class verdict : std::uint8_t { right, wrong, busy };
    [[nodiscard]] simplenet::task<verdict> check(const simplenet::http::basic_credentials& given);

private:
    using clock = std::chrono::steady_clock;
    using digest = std::array<std::byte, 32>;
    struct digest_hash {
        std::size_t operator()(const digest& of) const noexcept;
    };

    /// None in a build without OpenSSL, where nothing is remembered.
    [[nodiscard]] std::optional<digest>
    digest_of(const simplenet::http::basic_credentials& given) const;
    [[nodiscard]] bool remembers(const digest& of);
    void remember(const digest& of);

    const std::shared_ptr<const password_file> users_;
    std::array<std::byte, 32> secret_;
    std::mutex mutex_;
    std::unordered_map<digest, clock::time_point, digest_hash> known_; // until when
    const std::shared_ptr<std::atomic<unsigned>> checking_ =
        std::make_shared<std::atomic<unsigned>>(0);
};

} // namespace httpd
