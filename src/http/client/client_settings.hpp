#pragma once
// client_settings: the options of a client, with everything they refer to. Layer http, private.

#include <simplenet/core/error.hpp>
#include <simplenet/http/client_options.hpp>

#if SIMPLENET_HAS_TLS
#include <simplenet/tls/context.hpp>
#endif

#include <chrono>
#include <optional>
#include <string>

namespace simplenet::v0::http::detail {

/// Shared by a client, its pool, its calls and its answers.
class client_settings {
public:
    /// @param send_idle  Without a byte taken, while a request leaves; none: as body_idle.
    explicit client_settings(const client_options& options,
                             std::optional<std::chrono::nanoseconds> send_idle = std::nullopt);

    [[nodiscard]] const client_options& options() const noexcept { return options_; }
    [[nodiscard]] std::chrono::nanoseconds send_idle() const noexcept { return send_idle_; }
#if SIMPLENET_HAS_TLS
    /// The context of the options, or one that trusts the system's store.
    [[nodiscard]] result<tls::context> context();
#endif

private:
    const std::string user_agent_;
    client_options options_;
    std::chrono::nanoseconds send_idle_;
#if SIMPLENET_HAS_TLS
    std::optional<tls::context> context_;
#endif
};

/// `limit` after `begin`; the end of time if it is 0, or beyond it.
[[nodiscard]] inline std::chrono::steady_clock::time_point
after(std::chrono::steady_clock::time_point begin, std::chrono::nanoseconds limit) noexcept {
    constexpr auto end = std::chrono::steady_clock::time_point::max();
    if (limit <= std::chrono::nanoseconds::zero() || limit >= end - begin) return end;
    return begin + limit;
}

} // namespace simplenet::v0::http::detail
