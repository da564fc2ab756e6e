// Fetches one page from a server given by name.
// Lesson: async_connect() takes names too, and one time limit covers the lookup, the connection and
// the whole exchange.

#include "arguments.hpp"
#include "http_exchange.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace simplenet;

//! [get]
task<result<example::http_answer>> get(std::string host, std::uint16_t port, std::string path) {
    // Looks up IPv4 and IPv6, and takes the first connection that succeeds (RFC 8305).
    auto stream = co_await async_connect(host, port);
    if (!stream) co_return fail(stream);
    co_return co_await example::exchange_http(*std::move(stream), example::http_host(host, port),
                                              path);
}
//! [get]

task<result<example::http_answer>> get_within(std::string host, std::uint16_t port,
                                              std::string path, std::chrono::milliseconds limit) {
    co_return co_await with_timeout(get(host, port, path), limit);
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "http_get HOST [PATH] [--port N] [--timeout-ms N] "
                             "[--backend automatic|epoll|io_uring]"};
    const std::chrono::milliseconds limit{given.number<std::uint32_t>(
        "time-out", given.option("--timeout-ms").value_or("10000"), 1, 3'600'000)};
    const auto port = given.port(given.option("--port").value_or("80"));
    const auto backend = given.backend();
    const std::string host{given.next("HOST")};
    const std::string path{given.empty() ? "/" : given.next("PATH")};
    given.finish();
    if (!example::is_http_path(path)) given.wrong("bad path '" + path + "': expected /...");

    const std::string page = "http://" + example::http_host(host, port) + path;
    try {
        const auto answer = run(get_within(host, port, path, limit), {.backend = backend});
        // The error tells an unknown name, a refusal and a timeout apart.
        if (!answer) return example::failed(page, answer.error());
        if (answer->status != 200) {
            std::cerr << page << ": status " << answer->status << '\n';
            return 1;
        }
        std::cout << answer->body;
        return example::printed();
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
