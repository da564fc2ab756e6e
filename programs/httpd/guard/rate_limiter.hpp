#pragma once
// httpd::rate_limiter: how many requests an address may make.

#include <simplenet/ip/ip_address.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace httpd {

/// A token bucket for each address, IPv6 addresses by their network of 64 bits, which one household
/// has. Shared by all loops.
///
/// Bounded: 32 768 addresses in 1 MiB. A bucket that is full again is no different from none, so it
/// makes room for others; when a crowd has emptied all the buckets that an address could use, the
/// one that is nearest to full goes, so that many addresses cannot free one that has used up its
/// own. Which buckets those are depends on a secret of this process.
///
/// Any thread.
class rate_limiter {
public:
    using clock = std::chrono::steady_clock;

    /// A bucket holds 1 + `burst` requests, and fills up with `requests` in each `per`.
    ///
    /// @pre `requests` and `per` are positive.
    rate_limiter(std::uint64_t requests, std::chrono::nanoseconds per, std::uint64_t burst);

    /// Takes one request from the bucket of `from`.
    ///
    /// @return None: there was one. Otherwise nothing was taken, and there will be one after so
    ///         long.
    [[nodiscard]] std::optional<std::chrono::nanoseconds>
    take(const simplenet::ip_address& from, clock::time_point now = clock::now());

private:
    // The generic cell rate algorithm (ITU-T I.371): a bucket is the point in time when it is full.
    // A request moves that by `interval_`, and is refused if it is more than `depth_` ahead.
    struct bucket {
        std::array<std::uint64_t, 2> address{};
        std::chrono::nanoseconds full_at = std::chrono::nanoseconds::min();
    };
    static constexpr std::size_t ways = 8;
    struct alignas(64) set {
        std::mutex mutex;
        std::array<bucket, ways> buckets;
    };
    static constexpr std::size_t sets = 4096; // a power of two

    [[nodiscard]] set& set_of(const std::array<std::uint64_t, 2>& address) const noexcept;

    const std::chrono::nanoseconds interval_;
    const std::chrono::nanoseconds depth_;
    const std::uint64_t secret_;
    const std::unique_ptr<set[]> sets_;
};

} // namespace httpd
