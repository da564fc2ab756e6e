#include "httpd/guard/rate_limiter.hpp"

#include "httpd/guard/counted_address.hpp"

#include <algorithm>
#include <limits>
#include <random>

namespace httpd {

namespace {

using std::chrono::nanoseconds;

std::uint64_t make_secret() {
    std::random_device random; // getrandom(2)
    return std::uint64_t{random()} << 32 | random();
}

/// The finalizer of splitmix64, a permutation of the numbers of 64 bits.
constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

nanoseconds multiplied(nanoseconds one, std::uint64_t count) noexcept {
    const auto most = static_cast<std::uint64_t>(nanoseconds::max().count() / 4);
    const auto each = static_cast<std::uint64_t>(one.count());
    return nanoseconds{static_cast<nanoseconds::rep>(count > most / each ? most : each * count)};
}

} // namespace

rate_limiter::rate_limiter(std::uint64_t requests, nanoseconds per, std::uint64_t burst)
    : interval_{std::max(nanoseconds{1}, nanoseconds{static_cast<nanoseconds::rep>(
                                             static_cast<std::uint64_t>(per.count()) / requests)})}
    , depth_{multiplied(interval_, burst)}
    , secret_{make_secret()}
    , sets_{std::make_unique<set[]>(sets)} {}

rate_limiter::set&
rate_limiter::set_of(const std::array<std::uint64_t, 2>& address) const noexcept {
    return sets_[mixed(mixed(address[0] ^ secret_) ^ address[1]) & (sets - 1)];
}

std::optional<nanoseconds> rate_limiter::take(const simplenet::ip_address& from,
                                              clock::time_point at) {
    const std::array<std::uint64_t, 2> address = counted_as(from);
    const nanoseconds now = at.time_since_epoch();
    set& among = set_of(address);
    const std::lock_guard locked{among.mutex};
    auto found = std::ranges::find(among.buckets, address, &bucket::address);
    if (found == among.buckets.end()) {
        found = std::ranges::min_element(among.buckets, {}, &bucket::full_at);
        *found = {.address = address, .full_at = now};
    }
    const nanoseconds full_at = std::max(found->full_at, now);
    if (full_at - now > depth_) return full_at - now - depth_;
    found->full_at = full_at + interval_;
    return std::nullopt;
}

} // namespace httpd
