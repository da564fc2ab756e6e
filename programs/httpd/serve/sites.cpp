#include "httpd/serve/sites.hpp"

#include "httpd/serve/error_answer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace httpd {

namespace http = simplenet::http;

namespace {

/// Of `OPTIONS *`, which asks about no path.
simplenet::task<simplenet::result<>> answer_for_all(http::response& answer) {
    co_return co_await answer.status(204).send({}, {});
}

} // namespace

sites::sites(const std::vector<site>& of, const gateway_listener& listener)
    : are_{of}
    , by_host_{are_} {
    for (const site& each : are_)
        served_.push_back(std::make_unique<served_site>(each, listener));
}

answering sites::serve(http::request& asked, http::response& answer, const arrival& by) const {
    const auto site = by_host_.find(asked.host());
    if (!site) return send_error(421, answer);
    if (asked.path() == "*") return answer_for_all(answer);
    if (by.https_port && !by_host_.is_served(asked.host())) {
        return served_[*site]->serve(asked, answer,
                                     {.https_port = by.https_port, .is_foreign = true});
    }
    return served_[*site]->serve(asked, answer, by);
}

std::vector<site_backend> sites::backends() const {
    std::vector<site_backend> all;
    for (const auto& each : served_)
        std::ranges::move(each->backends(), std::back_inserter(all));
    return all;
}

http::router sites::router_for(std::shared_ptr<const sites> to, const arrival& by) {
    http::router made;
    // Limits on bodies are those of sites and routes.
    made.fallback(
        [to = std::move(to), by](http::request& asked, http::response& answer) {
            return to->serve(asked, answer, by);
        },
        {.body = 0});
    return made;
}

} // namespace httpd
