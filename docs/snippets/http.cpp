// The code of the pages about HTTP, and of its headers.

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

//! [hello]
task<result<>> hello(http::request& asked, http::response& answer) {
    const std::string text = "Hello, " + std::string{asked.parameter("name")} + "!\n";
    co_return co_await answer.send("text/plain", text);
}

int serve() {
    http::router routes;
    routes.get("/hello/{name}", hello);
    const auto ended = http::run_server({ip_address::loopback_v4(), 8080}, std::move(routes));
    if (!ended) std::puts(ended.error().message().c_str());
    return ended ? 0 : 1;
}
//! [hello]

//! [routes]
http::router make_routes() {
    http::router routes;
    routes.get("/users/{id}", [](http::request& asked, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", asked.parameter("id"));
    });
    routes.post("/users",
                [](http::request& asked, http::response& answer) -> task<result<>> {
                    const auto body = co_await asked.read_all(64 * 1024);
                    if (!body) co_return fail(body); // 413, 408 or 400
                    answer.status(201).set("Location", "/users/1");
                    co_return co_await answer.send("text/plain", *body);
                },
                {.body = 64 * 1024});
    return routes;
}
//! [routes]

//! [server]
task<result<>> serve_for_a_minute(event_loop_group& group) {
    auto server = http::server::listen(group, {ip_address::loopback_v4(), 8080}, make_routes());
    if (!server) co_return fail(server);
    const auto slept = co_await async_sleep(1min);
    if (!slept) co_return fail(slept);
    const shutdown_report report = co_await server->shutdown(10s);
    std::printf("%zu connections ended by themselves\n", report.drained);
    co_return result<>{};
}
//! [server]

} // namespace

namespace snippets {

int all_of_http(event_loop_group& group) {
    (void)run(serve_for_a_minute(group));
    return serve();
}

} // namespace snippets
