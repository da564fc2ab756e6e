#pragma once
// httpd::forwarded_client: who the client is, when trusted proxies stand in front of this server.

#include <simplenet/http/fields.hpp>
#include <simplenet/ip/address_set.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <optional>

namespace httpd {

/// What trusted proxies have told of a client.
struct forwarded_client {
    std::optional<simplenet::endpoint> peer;
    std::optional<bool> secure;

    /// Each proxy appends the address it was connected from, so the last entry is true, and each
    /// one before it if the next was told by a trusted proxy. The client is the last address that
    /// is not trusted; if all are, the first. What an untrusted client has put in front of that
    /// does not count.
    ///
    /// X-Forwarded-For wins over X-Real-IP where a proxy sets one of X-Forwarded-*; otherwise
    /// `Forwarded` (RFC 7239) wins over X-Real-IP: nearly all proxies set the first two, and many
    /// of them pass on a `Forwarded` that is a client's own. A proxy that sets only `Forwarded`
    /// must remove the others. Entries that are no address ("unknown", "_hidden") end the search:
    /// the proxy before them is the client that is known.
    ///
    /// @param asked    Of a request whose connection comes from an address of `trusted`.
    [[nodiscard]] static forwarded_client of(const simplenet::http::fields& asked,
                                             const simplenet::address_set& trusted);
};

} // namespace httpd
