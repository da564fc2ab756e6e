// Fetches a URL, as curl does: `http_fetch -L 5 -i https://example.org/`.
// Lesson: a client verifies, follows, decompresses and limits by its options; a body is read like
// any stream, as it arrives.

#include "arguments.hpp"

#include <simplenet/http.hpp>

#include <chrono>
#include <fstream>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

using namespace simplenet;

struct wish {
    std::string method;
    std::string url;
    http::fields fields;
    std::string body;
    bool with_head = false;
};

void print_head(const http::client_response& answer, std::ostream& to) {
    to << "HTTP/1." << answer.version() % 10 << ' ' << answer.status() << ' ' << answer.reason()
       << '\n';
    for (const http::field each : answer.fields())
        to << each.name << ": " << each.value << '\n';
    to << '\n';
}

//! [fetch]
task<result<>> fetch(const wish& asked, const http::client_options& options, std::ostream& to) {
    http::client web{options};
    auto answer = co_await web.send(
        {.method = asked.method, .url = asked.url, .fields = &asked.fields, .body = asked.body});
    if (!answer) co_return fail(answer);
    if (asked.with_head) print_head(*answer, to);
    std::vector<char> piece(65536);
    for (;;) {
        const auto count = co_await answer->read_some(piece);
        if (!count && count.error() == errc::end_of_stream) co_return result<>{};
        if (!count) co_return fail(count);
        // Writing blocks the loop, which has nothing else to do.
        if (!to.write(piece.data(), static_cast<std::streamsize>(*count))) {
            co_return std::unexpected{std::error_code{errno, std::system_category()}};
        }
    }
}
//! [fetch]

/// Takes `Name: value`.
void add_field(const example::arguments& given, http::fields& to, std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos)
        given.wrong("bad field '" + std::string{line} + "': expected NAME: VALUE");
    to.add(line.substr(0, colon), line.substr(colon + 1));
}

wish read_wish(example::arguments& given) {
    wish asked;
    const auto method = given.option("-X");
    const auto body = given.option("-d");
    while (const auto line = given.option("-H"))
        add_field(given, asked.fields, *line);
    asked.with_head = given.flag("-i");
    if (body) {
        asked.body = *body;
        if (!asked.fields.find("Content-Type"))
            asked.fields.add("Content-Type", "application/x-www-form-urlencoded");
    }
    asked.method = method.value_or(body ? "POST" : "GET");
    return asked;
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "http_fetch URL [-X METHOD] [-d BODY] [-H 'NAME: VALUE']... [-o FILE] "
                             "[-i] [-L REDIRECTS] [--max-time SECONDS] "
                             "[--backend automatic|epoll|io_uring]"};
    wish asked = read_wish(given);
    http::client_options options;
    options.redirects =
        given.number<unsigned>("number of redirects", given.option("-L").value_or("0"), 0, 100);
    options.total = std::chrono::seconds{
        given.number<unsigned>("time", given.option("--max-time").value_or("0"), 0, 86'400)};
    const auto path = given.option("-o");
    const auto backend = given.backend();
    asked.url = given.next("URL");
    given.finish();

    std::ofstream file;
    if (path) {
        file.open(std::string{*path}, std::ios::binary);
        if (!file) return example::failed(*path, {errno, std::system_category()});
    }
    try {
        std::ostream& to = path ? file : std::cout;
        const auto ended = run(fetch(asked, options, to), {.backend = backend});
        if (!ended) return example::failed(asked.url, ended.error());
        if (!to.flush()) {
            return example::failed("cannot write the output", {errno, std::system_category()});
        }
        return EXIT_SUCCESS;
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
