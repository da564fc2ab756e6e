#include "server/server_metrics.hpp"

#include "insight/metrics_page.hpp"
#include "server/server_core.hpp"

#include <cstddef>
#include <string>

namespace simplenet::v0::detail {

namespace {

constexpr metric connections_accepted{"simplenet_server_accepted_total",
                                      "Connections that were taken from the backlog.",
                                      metric_kind::counter};
constexpr metric connections_refused{"simplenet_server_refused_total",
                                     "Connections that were reset, not served.",
                                     metric_kind::counter};
constexpr metric connections_ended{"simplenet_server_ended_total",
                                   "Connections whose handler has ended.", metric_kind::counter};
constexpr metric handlers_failed{"simplenet_server_failed_total",
                                 "Handlers that threw or returned an error.", metric_kind::counter};
constexpr metric connections_open{"simplenet_server_open", "Connections that are served now.",
                                  metric_kind::gauge};

} // namespace

void server_metrics::write_to(metrics_page& page) const {
    const std::string server = std::to_string(number());
    const std::string address = core_.name();
    const server_statistics now = core_.statistics();
    const auto count = [&](const metric& of, std::uint64_t value) {
        page.add(of, {{"server", server}, {"address", address}}, value);
    };
    count(connections_accepted, now.accepted);
    count(connections_refused, now.refused);
    count(connections_ended, now.ended);
    count(handlers_failed, now.failed);
    for (std::size_t each = 0; each < now.open_by_loop.size(); ++each) {
        const std::string loop = std::to_string(each);
        page.add(connections_open, {{"server", server}, {"address", address}, {"loop", loop}},
                 now.open_by_loop[each]);
    }
}

} // namespace simplenet::v0::detail
