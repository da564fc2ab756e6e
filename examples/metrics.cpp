// An echo server on several cores, with its figures for Prometheus on a second port.
// Lesson: write_metrics() prints all loops and servers of the process, asked on any of them.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

task<> echo(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

//! [answer]
// HTTP as far as Prometheus needs it. Every path gives the metrics.
task<> answer_scrape(tcp_stream client) {
    std::string request;
    if (!co_await async_read_until(client, request, "\r\n\r\n", 8192)) co_return;

    std::ostringstream metrics;
    write_metrics(metrics);
    const std::string text = metrics.str();
    const std::string head = "HTTP/1.0 200 OK\r\n"
                             "Content-Type: text/plain; version=0.0.4\r\n"
                             "Content-Length: " +
                             std::to_string(text.size()) + "\r\n\r\n";
    const std::array<const_buffer, 2> answer{head, text};
    (void)co_await async_write_all(client, answer);
}
//! [answer]

// A client gets an answer or is disconnected. The server has no connection limit, because idle
// clients could use it up.
task<> serve_scrape(tcp_stream client) {
    auto answered = answer_scrape(std::move(client));
    (void)co_await with_timeout(std::move(answered), 5s);
}

void announce(const tcp_server& echoes, const tcp_server& scrapes, const event_loop_group& group) {
    std::cout << "listening on " << echoes.local_endpoint().to_string() << " ("
              << to_string(group[0].selected_backend()) << ")\n"
              << "metrics on http://" << scrapes.local_endpoint().to_string() << "/metrics"
              << std::endl; // flushed: a program may be waiting for it
}

// Runs on a loop of its own until a signal stops it; the group serves meanwhile.
task<result<>> serve(event_loop_group& group, endpoint at, endpoint metrics_at) {
    auto echoes = tcp_server::listen(group, at);
    if (!echoes) co_return fail(echoes);
    auto scrapes = tcp_server::listen(group, metrics_at);
    if (!scrapes) co_return fail(scrapes);
    if (auto started = echoes->serve(echo); !started) co_return fail(started);
    if (auto started = scrapes->serve(serve_scrape); !started) co_return fail(started);
    announce(*echoes, *scrapes, group);

    async_event never;
    (void)co_await never.wait();
    auto last_words = echoes->shutdown(1s);
    (void)co_await shield(std::move(last_words));
    co_return result<>{};
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "metrics [--address IP] [--port N] [--metrics-port N] [--loops N] "
                             "[--backend automatic|epoll|io_uring]"};
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const endpoint at{address, given.port(given.option("--port").value_or("7000"), 0)};
    const endpoint metrics_at{address, given.port(given.option("--metrics-port").value_or("0"), 0)};
    const auto loops =
        given.number<unsigned>("number of loops", given.option("--loops").value_or("2"), 1U, 64U);
    const backend chosen = given.backend();
    given.finish();

    auto group =
        event_loop_group::create({.loops = loops, .loop = {.backend = chosen}, .name = "echo"});
    if (!group) return example::failed("cannot make the event loops", group.error());
    try {
        const auto ended = run(serve(*group, at, metrics_at), {.backend = chosen});
        if (!ended) return example::failed("cannot listen", ended.error());
    } catch (const std::system_error& error) {
        return example::failed("cannot make an event loop", error.code());
    }
}
