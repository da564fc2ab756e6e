// crowd_http_idioms: a server with the handlers of the pages about HTTP, for the crowd. targets.py
// has a request for each; idioms.py maps the pages to them.

#include "http_serving.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>
#if SIMPLENET_SNIPPETS_TLS
#include <simplenet/tls.hpp>
#endif

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace page {
#include "../../docs/snippets/http.cpp"
} // namespace page

namespace page::first {
#include "../../docs/snippets/http_first.cpp"
} // namespace page::first

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "crowd_http_idioms");
    simplenet::http::router routes = page::make_routes();
    page::snippets::all_routes(routes);
    routes.get("/hello/{name}", page::first::hello).websocket("/echo", page::echo);
    simplenet::http::run_server_options options;
    options.server = page::with_reports();
    return example::serve_http(given, std::move(routes), options);
}
