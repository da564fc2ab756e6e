// The code in the tables about HTTP of docs/usage/coming-from.md, so that it is compiled.

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace snippets {

task<result<>> handler(http::request& asked, http::response& answer);
task<result<>> page(http::request& asked, http::response& answer);
task<> chat(http::websocket& peer);

task<result<>> bodies(http::request& asked, http::response& answer) {
    (void)asked.method();
    (void)asked.target();
    (void)asked.path();
    (void)asked.query();
    (void)asked.parameter("name");
    (void)asked.fields().find("Accept");
    (void)asked.peer();
    std::span<std::byte> buffer;
    const auto body = co_await asked.read_all(65536);
    const auto count = co_await asked.read_some(buffer);
    if (!body || !count) co_return fail(errc::end_of_stream);
    answer.status(404);
    answer.set("Cache-Control", "no-store");
    const std::string text = "hello";
    const std::string json = "{}";
    (void)co_await answer.send("text/plain", text);
    (void)co_await answer.send("application/json", json);
    (void)co_await async_write_all(answer, text);
    const int file = 3;
    (void)co_await answer.send_file(file, 4096, {.content_type = "image/png"});
    (void)co_await when_any(async_sleep(1s), server_stop());
    auto stream = co_await answer.upgrade("my-protocol");
    co_return result<>{};
}

task<> messages(http::websocket& peer, std::string_view text) {
    const auto message = co_await peer.read_message();
    (void)co_await peer.write_message(text);
    (void)co_await peer.close(1000, "bye");
}

task<> asks() {
    http::client client{{.redirects = 5}};
    auto answer = co_await client.get("https://example.org/");
    if (answer) (void)co_await answer->read_all(1024 * 1024);
    (void)co_await client.websocket("wss://example.org/chat");
}

task<> servers(event_loop_group& group, std::stop_token stop) {
    http::router routes;
    routes.get("/", page);
    routes.get("/users/{name}", handler).post("/users", handler, {.body = 65536});
    routes.get("/static/{rest...}", handler);
    routes.any("/any", handler);
    routes.fallback(handler);
    routes.files("/static", "/srv/www", {.listing = true});
    routes.websocket("/chat", chat);

    (void)http::run_server(endpoint::any(8080), routes);
    (void)http::run_server(endpoint::any(8080), routes, {.grace = 10s}, stop);
    auto server = http::server::listen(group, endpoint::any(8080), routes);
    if (!server) co_return;
    (void)server->replace(routes);
    (void)co_await server->shutdown(10s);

    http::server_options options;
    options.limits.body = 1024 * 1024;
    options.limits.header_bytes = 8192;
    options.limits.headers_within = 20s;
    options.limits.keep_alive = 75s;
}

} // namespace snippets
