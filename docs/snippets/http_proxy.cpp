// The code of the page about reverse proxies, and of its headers.

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace snippets {

//! [router]
http::router make_routes() {
    constexpr std::array backends{http::backend{"10.0.0.1:9000", 2}, http::backend{"10.0.0.2:9000"},
                                  http::backend{"unix:/run/app.sock"}};
    http::router routes;
    routes.proxy("/api", {.backends = backends});
    routes.files("/", "/srv/www");
    return routes;
}
//! [router]

//! [trusted]
result<http::router> behind_a_balancer() {
    constexpr std::array<std::string_view, 2> balancers{"10.0.0.0/8", "::1"};
    const auto trusted = address_set::parse(balancers);
    if (!trusted) return fail(trusted);
    constexpr std::array backends{http::backend{"127.0.0.1:9000"}};
    http::router routes;
    routes.proxy("/", {.backends = backends, .trusted = &*trusted}); // copies everything
    return routes;
}
//! [trusted]

//! [handler]
void log_trouble(const http::gateway_report& report, void*) {
    // Text of a backend may contain any byte; this program has only known texts.
    std::fprintf(stderr, "%.*s: %.*s: %s\n", static_cast<int>(report.backend.size()),
                 report.backend.data(), static_cast<int>(report.text.size()), report.text.data(),
                 report.error.message().c_str());
}

http::router own_error_pages() {
    constexpr std::array backends{http::backend{"127.0.0.1:9000"}};
    const http::proxy_handler to_app{{.backends = backends, .head = 10s, .report = log_trouble}};
    http::router routes;
    routes.any("/{path...}",
               [to_app](http::request& asked, http::response& answer) -> task<result<>> {
                   const auto status = co_await to_app.attempt(asked, answer);
                   if (!status) co_return fail(status);
                   if (*status == 0) co_return result<>{}; // answered
                   answer.status(*status);
                   co_return co_await answer.send("text/html", "<h1>We will be back soon.</h1>");
               });
    return routes;
}
//! [handler]

void all_of_http_proxy() {
    (void)make_routes();
    (void)behind_a_balancer();
    (void)own_error_pages();
}

} // namespace snippets
