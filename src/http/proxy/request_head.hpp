#pragma once
// The head of a request as a backend gets it. Layer http, private: no I/O.

#include <simplenet/http/fields.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// How a proxy presents requests to its backends.
struct head_rules {
    /// In place of the client's Host; empty: the client's.
    std::string host;
    /// The pseudonym in Via; empty: no Via.
    std::string via;
    /// Set in every request, in place of the client's fields of these names.
    http::fields set;
    /// Whether names with "_" are passed on.
    bool underscores = false;
};

/// What is known of a request that is to be passed on.
struct passed_request {
    std::string_view method;
    /// Normalised; the target as the client wrote it, of which the query is used.
    std::string_view path;
    std::string_view target;
    /// Host; empty: the client has told none.
    std::string_view host;
    unsigned version = 11;
    const http::fields* fields = nullptr;
    bool secure = false;
    /// The peer of the connection, and whether what it says about others counts.
    ip_address peer;
    bool trusted = false;
    /// What the program has told, or else the peer.
    ip_address client;
    bool client_is_told = false;
    /// The body: its size; none if it leaves in chunks.
    bool has_body = false;
    std::optional<std::uint64_t> length;
    /// Asks for a WebSocket.
    bool upgrades = false;
};

/// What Max-Forwards of a TRACE or OPTIONS says (RFC 9110, section 7.6.2).
enum class forwards : std::uint8_t { allowed, exhausted, malformed };
[[nodiscard]] forwards judge_forwards(std::string_view method, const http::fields& fields) noexcept;

/// The path of a request as its backend gets it, with the query.
///
/// The backend decodes the segments of `path`, whichever way it decodes. Where the client's own
/// writing leads to `path`, its reserved characters stay encoded or not as they were, because they
/// may mean something to the backend (RFC 3986, section 2.2); dot segments and empty segments are
/// gone. A segment such as "..;a" gets its semicolon encoded: some backends drop what is behind
/// one, and would then find a dot segment.
[[nodiscard]] std::string backend_target(std::string_view method, std::string_view path,
                                         std::string_view target);

/// The head, with its empty line. Throws std::bad_alloc.
///
/// @param fallback_host  For a client of HTTP/1.0 that has told none.
[[nodiscard]] std::string write_request_head(const passed_request& asked, const head_rules& rules,
                                             std::string_view fallback_host);

/// The names of fields that Connection asks to remove.
class named_fields {
public:
    explicit named_fields(const http::fields& of) noexcept;

    [[nodiscard]] bool has(std::string_view name) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return !any_; }

private:
    const http::fields& fields_;
    bool any_ = false;
};

} // namespace simplenet::v0::http::detail
