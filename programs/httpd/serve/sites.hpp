#pragma once
// httpd::sites: all sites of a configuration, as the handler of an http::router.

#include "httpd/config/configuration.hpp"
#include "httpd/serve/host_table.hpp"
#include "httpd/serve/served_site.hpp"

#include <simplenet/http/router.hpp>

#include <memory>
#include <vector>

namespace httpd {

/// Immutable; shared by all loops. Lives as long as a router or a request uses it.
class sites {
public:
    /// Opens what the sites need. Throws as served_site.
    ///
    /// @param of  Copied: what is served does not change with a configuration that is read later.
    sites(const std::vector<site>& of, const gateway_listener& listener);

    [[nodiscard]] answering serve(simplenet::http::request& asked,
                                  simplenet::http::response& answer, const arrival& by) const;
    [[nodiscard]] std::vector<site_backend> backends() const;

    /// A router that leaves everything to `to`: one for each listener, as the router is all that
    /// tells a request where it has arrived.
    [[nodiscard]] static simplenet::http::router router_for(std::shared_ptr<const sites> to,
                                                            const arrival& by = {});

private:
    const std::vector<site> are_;
    const host_table by_host_;
    std::vector<std::unique_ptr<served_site>> served_;
};

} // namespace httpd
