// An echo server whose loops write what an operator should know into spdlog.
// Lesson: loop_options::on_event is all that a log needs. Built only where spdlog is installed.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <system_error>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

using namespace simplenet;
using namespace std::chrono_literals;

task<> echo(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

//! [log]
// Called on the loops' threads and on the one that watches them: spdlog's loggers are thread-safe.
void log(const loop_event& event, void*) {
    const bool usual = event.kind == loop_event_kind::handed_over;
    spdlog::log(usual ? spdlog::level::debug : spdlog::level::warn, "{}", event.text);
}
//! [log]

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "logging [--address IP] [--port N] [--most CONNECTIONS] "
                             "[--backend automatic|epoll|io_uring]"};
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const endpoint at{address, given.port(given.option("--port").value_or("7000"), 0)};
    const auto most = given.number<unsigned>(
        "number of connections", given.option("--most").value_or("1000"), 1U, 1'000'000U);
    run_server_options options;
    options.group.loops = 2;
    options.group.loop.backend = given.backend();
    given.finish();

    spdlog::set_default_logger(spdlog::stderr_logger_mt("server"));
    spdlog::set_level(spdlog::level::debug);
    options.group.loop.on_event = log;
    options.group.loop.stall_threshold = 100ms;
    options.server.max_connections = most;
    options.server.full = when_full::reset;
    options.grace = 1s;
    options.on_listening = [](tcp_server& server, void*) {
        std::cout << "listening on " << server.local_endpoint().to_string() << " ("
                  << to_string(event_loop::current()->selected_backend()) << ")" << std::endl;
    };
    const auto ended = run_server(at, echo, options);
    if (!ended) return example::failed("cannot serve on " + at.to_string(), ended.error());
    spdlog::info("{} connections ended by themselves, {} were stopped", ended->drained, ended->cut);
}
