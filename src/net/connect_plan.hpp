#pragma once
// connect_plan: decides which address of a name to try next, and when. Layer net, private. Only the
// decisions of RFC 8305: no socket, no clock, no coroutine.

#include <simplenet/ip/address_family.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>

namespace simplenet::v0::detail {

/// Gets the events of connecting to a name, and returns the next step. Loop thread only.
class connect_plan {
public:
    using time_point = std::chrono::steady_clock::time_point;
    using nanoseconds = std::chrono::nanoseconds;

    /// RFC 8305, sections 5 and 8: with shorter delays a name with many addresses floods the
    /// network; nobody waits for longer ones.
    static constexpr std::chrono::milliseconds shortest_attempt_delay{10};
    static constexpr std::chrono::seconds longest_attempt_delay{2};
    /// The limit of attempts for one connection: a name server can invent thousands of addresses,
    /// and each that does not answer holds a descriptor until the kernel gives up.
    static constexpr std::size_t most_attempts = 32;

    struct delays {
        nanoseconds attempt;    // clamped to the limits above
        nanoseconds resolution; // for IPv6's answer after IPv4's; clamped to 0 ... 2 s
    };
    explicit connect_plan(delays delays);

    /// A lookup of this family is in progress.
    void ask(address_family family) noexcept { of(family).asked = true; }
    /// The lookup is over, with these addresses, best first; none if it failed.
    void answered(address_family family, std::span<const ip_address> addresses, time_point now);
    /// An attempt requested by next() has failed.
    void failed() noexcept;

    struct step {
        enum class kind {
            attempt, // to `address`, then ask again
            wait,    // for news, until `until` at the latest
            give_up  // nothing is left to try or to wait for
        };
        kind what;
        ip_address address;
        std::optional<time_point> until = std::nullopt;
    };
    [[nodiscard]] step next(time_point now);

private:
    struct side {
        bool asked = false; // and not answered yet
        std::optional<time_point> answered;
        std::deque<ip_address> left;
    };

    [[nodiscard]] side& of(address_family family) noexcept {
        return sides_[family == address_family::v4];
    }
    /// When the next attempt may start; empty: at once.
    [[nodiscard]] std::optional<time_point> not_before() noexcept;
    [[nodiscard]] side& next_side() noexcept;

    delays delays_;
    std::array<side, 2> sides_; // IPv6, IPv4
    std::size_t started_ = 0;
    std::size_t running_ = 0;
    bool hurry_ = false; // an attempt has failed since the last one was started
    bool last_was_v4_ = false;
    time_point last_start_{};
};

} // namespace simplenet::v0::detail
