// The smallest HTTP server, on every core.
// Lesson: routes and run_server() are a whole server, with its limits and a graceful end.

#include "arguments.hpp"

#include <simplenet/http.hpp>

#include <string>

using namespace simplenet;

//! [hello]
task<result<>> hello(http::request&, http::response& answer) {
    co_return co_await answer.send("text/plain", "Hello, world!\n");
}

task<result<>> greet(http::request& asked, http::response& answer) {
    const std::string text = "Hello, " + std::string{asked.parameter("name")} + "!\n";
    co_return co_await answer.send("text/plain", text);
}

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "http_hello");
    http::router routes;
    routes.get("/", hello).get("/hello/{name}", greet);

    http::run_server_options options;
    options.group.loop.backend = given.backend;
    options.on_listening = [](http::server& server, void*) {
        example::announce(server, event_loop::current()->selected_backend());
    };
    const auto ended = http::run_server(given.at, std::move(routes), options);
    return ended ? 0 : example::failed("cannot serve", ended.error());
}
//! [hello]
