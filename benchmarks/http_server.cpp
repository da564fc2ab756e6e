// Our HTTP server in the suite: a fixed answer at /hello, and the files of a folder.
//
//   --port N --backend NAME --root FOLDER --small BYTES (files up to this size are kept in memory)

#include "arguments.hpp"

#include <simplenet/http.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

using namespace simplenet;

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto port = static_cast<std::uint16_t>(given.number("port", 0));
    const std::string root{given.text("root", ".")};
    http::static_options files;
    files.small_file = given.number("small", files.small_file);
    files.index = {};
    http::run_server_options options;
    options.group.loops = 1;
    options.group.loop.backend =
        given.text("backend", "epoll") == "io_uring" ? backend::io_uring : backend::epoll;
    static_cast<void>(given.flag("stay"));
    given.done();

    http::router routes;
    routes.get("/hello", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "Hello, world!\n");
    });
    routes.files("/", root, files);
    options.on_listening = [](http::server& server, void*) {
        std::printf("%u\n", static_cast<unsigned>(server.local_endpoint().port()));
        std::fflush(stdout);
    };
    const auto ended = http::run_server(endpoint::loopback(port), std::move(routes), options);
    if (!ended) std::fprintf(stderr, "%s\n", ended.error().message().c_str());
    return ended ? 0 : 1;
}
