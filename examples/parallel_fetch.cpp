// Fetches many pages from a server, a few at a time.
// Lesson: a task group with a limit. The children share nothing but the loop, and with_group()
// returns when the last of them has ended.

#include "arguments.hpp"
#include "http_exchange.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

using namespace simplenet;

struct job {
    std::string host;
    std::uint16_t port;
    std::vector<std::string> paths;
    std::size_t at_once;
    std::chrono::milliseconds limit; // for each page
};

task<result<example::http_answer>> get(const job& from, std::string path) {
    auto stream = co_await async_connect(from.host, from.port);
    if (!stream) co_return fail(stream);
    co_return co_await example::exchange_http(*std::move(stream),
                                              example::http_host(from.host, from.port), path);
}

/// A page that cannot be fetched does not stop the others: it is counted, not returned.
task<> fetch(const job& from, const std::string& path, std::size_t& failures) {
    const auto answer = co_await with_timeout(get(from, path), from.limit);
    if (answer && answer->status == 200) {
        std::cout << path << ": " << answer->body.size() << " bytes\n";
        co_return;
    }
    ++failures;
    std::cerr << path << ": "
              << (answer ? "status " + std::to_string(answer->status) : answer.error().message())
              << '\n';
}

//! [group]
task<result<std::size_t>> fetch_all(const job& from) {
    std::size_t failures = 0;
    // The 11th child waits until one of the first ten has ended.
    auto body = [&](task_group& group) -> task<> {
        for (const std::string& path : from.paths)
            group.spawn(fetch(from, path, failures));
        co_return;
    };
    if (auto all = co_await with_group({.limit = from.at_once}, body); !all) co_return fail(all);
    co_return failures;
}
//! [group]

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "parallel_fetch HOST PATH... [--port N] [--at-once N] "
                             "[--timeout-ms N] [--backend automatic|epoll|io_uring]"};
    job from{};
    from.limit = std::chrono::milliseconds{given.number<std::uint32_t>(
        "time-out", given.option("--timeout-ms").value_or("10000"), 1, 3'600'000)};
    from.at_once = given.number<std::size_t>("number at once",
                                             given.option("--at-once").value_or("10"), 1, 10'000);
    from.port = given.port(given.option("--port").value_or("80"));
    const auto backend = given.backend();
    from.host = given.next("HOST");
    do {
        from.paths.emplace_back(given.next("PATH"));
        if (!example::is_http_path(from.paths.back())) {
            given.wrong("bad path '" + from.paths.back() + "': expected /...");
        }
    } while (!given.empty());

    try {
        const auto failures = run(fetch_all(from), {.backend = backend});
        if (!failures) return example::failed("fetching from " + from.host, failures.error());
        const int written = example::printed();
        return *failures == 0 ? written : 1;
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
