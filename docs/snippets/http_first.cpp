//! [hello]
#include <simplenet/http.hpp>

#include <iostream>
#include <string>
#include <utility>

using namespace simplenet;

task<result<>> hello(http::request& asked, http::response& answer) {
    const std::string text = "Hello, " + std::string{asked.parameter("name")} + "!\n";
    co_return co_await answer.send("text/plain", text);
}

int main() {
    http::router routes;
    routes.get("/hello/{name}", hello);
    const auto ended = http::run_server({ip_address::loopback_v4(), 8080}, std::move(routes));
    if (!ended) std::cerr << ended.error().message() << '\n';
    return ended ? 0 : 1;
}
//! [hello]
