// The code of docs/usage/http-fastcgi.md.

#include <simplenet/http.hpp>

#include <array>
#include <iostream>
#include <string_view>
#include <utility>

using namespace simplenet;

//! [fastcgi]
constexpr std::array php{http::backend{"unix:/run/php/php-fpm.sock"}};

http::router site() {
    http::fastcgi_options options;
    options.backends = php;
    options.root = "/srv/www";
    options.server_name = "www.example.org";
    http::router routes;
    routes.fastcgi("/", options);               // what ends in .php, and the index of a directory
    routes.files("/static", "/srv/www/static"); // more specific, so it wins
    return routes;
}
//! [fastcgi]

//! [front controller]
class application {
public:
    application()
        : php_{{.backends = php, .root = "/srv/www", .server_name = "www.example.org"}} {}

    task<result<>> operator()(http::request& asked, http::response& answer) const {
        const result<unsigned> status = co_await php_.attempt(asked, answer);
        if (!status) co_return fail(status);
        if (*status == 0) co_return result<>{};
        if (*status != 404) {
            co_return co_await answer.status(*status).send("text/plain", "Try again later.\n");
        }
        asked.rewrite("/index.php"); // REQUEST_URI stays what the client asked for
        co_return co_await php_(asked, answer);
    }

private:
    http::fastcgi_handler php_;
};
//! [front controller]

//! [report]
void to_log(const http::gateway_report& what, void*) {
    if (what.kind == http::gateway_event::message) {
        std::clog << what.backend << ": " << what.text << '\n'; // escape it where that matters
    } else {
        std::clog << what.backend << ": " << what.text << ": " << what.error.message() << '\n';
    }
}
//! [report]

namespace snippets {

void serve_applications(http::router& routes) {
    routes = site();
    routes.any("/app/{path...}", application{});
    http::fastcgi_options options;
    options.backends = php;
    options.report = to_log;
    routes.fastcgi("/reported", options);
}

} // namespace snippets
