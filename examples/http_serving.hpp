#pragma once
// Shared by the examples with HTTP: main() of a server whose routes are made. http_hello.cpp has it
// written out. Not a part of the library.

#include "arguments.hpp"

#include <simplenet/http.hpp>

#include <cstdlib>
#include <utility>

namespace example {

/// Serves `routes` on every core until SIGINT or SIGTERM; returns the exit status.
inline int serve_http(const server_options& given, simplenet::http::router routes,
                      simplenet::http::run_server_options options = {}) {
    options.group.loop.backend = given.backend;
    options.on_listening = [](simplenet::http::server& server, void*) {
        announce(server, simplenet::event_loop::current()->selected_backend());
    };
    const auto ended = simplenet::http::run_server(given.at, std::move(routes), options);
    if (!ended) return failed("cannot serve at " + given.at.to_string(), ended.error());
    return EXIT_SUCCESS;
}

} // namespace example
