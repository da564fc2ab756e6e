#pragma once
// http::backend: a server behind a gateway, and what becomes of it. Layer http: for
// fastcgi_options, proxy_options and status pages.

#include <simplenet/core/abi.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// A server to which a gateway passes requests.
///
/// Of several, each request goes to the one with the fewest requests in progress for its weight;
/// equal ones take turns. A backend that fails is left out for ten seconds: it cannot be connected
/// to, ends a connection before an answer, or exceeds a time limit before one. Then one request
/// tries it, and an answer makes it a backend like the others again. If all are left out, the one
/// that failed longest ago is tried, so no request is refused without an attempt.
struct backend {
    /// `host:port`, `[address]:port` for IPv6, or `unix:path`.
    std::string_view address{};
    /// 1 to 1000.
    unsigned weight = 1;
};

/// The most backends of one gateway.
inline constexpr std::size_t most_backends = 64;

/// Whether `address` has one of the forms of backend::address. A name is not looked up. Any thread.
[[nodiscard]] bool is_backend_address(std::string_view address) noexcept;

/// A backend at a moment, for people and for monitoring.
struct backend_status {
    std::string address;
    unsigned weight = 1;
    /// Requests in progress.
    unsigned active = 0;
    /// Requests that it has answered.
    std::uint64_t answered = 0;
    /// Times that it has failed.
    std::uint64_t failures = 0;
    /// How long it is left out still; none: it is in use. Zero: the next request tries it.
    std::optional<std::chrono::nanoseconds> left_out = {};
};

/// What a gateway_report is about.
enum class gateway_event : std::uint8_t {
    /// A line that the backend has written for people, such as one of PHP's error log. Any bytes
    /// but line feeds: escape it before it is shown.
    message,
    /// The backend failed: it cannot be reached, ended the connection, or took too long.
    failed,
    /// The backend answers again after it had failed.
    recovered,
    /// The answer breaks the protocol. The client got 502, or a part of the answer.
    bad_answer,
    /// The request could not be passed on for a reason on this side, such as a full disk.
    trouble,
    /// The directory `text` cannot store answers for slow clients. Nothing is lost; only the
    /// backends wait for these clients. At most once in ten seconds for each handler.
    not_stored,
    /// An answer was aborted: its client took nothing of it, and kept the backend waiting, or
    /// occupied room on the disk that another answer needed.
    slow_client,
};

/// What a gateway has to tell people, for their log.
struct gateway_report {
    gateway_event kind = gateway_event::failed;
    /// As backend::address. Empty: it concerns no backend. Valid during the call.
    std::string_view backend{};
    /// `message`: its line. `not_stored`: the directory. Otherwise what was being done, in a few
    /// words. Valid during the call.
    std::string_view text{};
    /// Why; none with a message.
    std::error_code error{};
};

/// Called with each gateway_report. Runs on any of the loops, and on several at once; must neither
/// block nor throw.
using gateway_reporter = void (*)(const gateway_report& report, void* context);

} // namespace simplenet::v0::http

#pragma GCC visibility pop
