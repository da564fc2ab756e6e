// Fetches pages over HTTPS, one after the other: `https_get https://example.org/`.
// Lesson: tls::async_connect() verifies the server before it returns; connections of one context
// resume the sessions of earlier ones.

#include "http_exchange.hpp"
#include "tls_arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace simplenet;

struct page {
    std::string url;
    std::string host;
    std::uint16_t port = 443;
    std::string path;
};

page read_url(const example::arguments& given, std::string_view url) {
    constexpr std::string_view scheme = "https://";
    if (!url.starts_with(scheme))
        given.wrong("bad URL '" + std::string{url} + "': expected https://...");
    const std::string_view rest = url.substr(scheme.size());
    const auto slash = rest.find('/');
    const std::string path{slash == std::string_view::npos ? "/" : rest.substr(slash)};
    if (!example::is_http_path(path)) given.wrong("bad path '" + path + "': expected /...");
    std::string authority{rest.substr(0, slash)};
    if (authority.find_first_of("@?#") != std::string::npos)
        given.wrong("bad URL '" + std::string{url} + "': expected https://HOST[:PORT][/...]");
    const auto colon = authority.rfind(':');
    const auto bracket = authority.rfind(']'); // of an IPv6 address
    if (colon == std::string::npos || (bracket != std::string::npos && bracket > colon))
        authority += ":443";
    const auto to = example::read_host_and_port(given, "URL", authority);
    return {std::string{url}, to.host, to.port, path};
}

void describe(const tls::connection_info& info) {
    std::cerr << example::to_string(info.version) << ", " << info.cipher
              << (info.resumed ? ", resumed" : "") << '\n';
}

//! [get]
task<result<example::http_answer>> get(const tls::context& trust, const page& from, bool verbose) {
    // Looks the name up, connects, and returns only if the server has a certificate for that name
    // from somebody we trust.
    auto stream = co_await tls::async_connect(from.host, from.port, trust);
    if (!stream) co_return fail(stream);
    if (verbose) describe(stream->info());
    // If somebody cuts the answer, the error is tls::errc::truncated.
    co_return co_await example::exchange_http(
        *std::move(stream), example::http_host(from.host, from.port, 443), from.path);
}
//! [get]

task<int> get_all(const tls::context& trust, const std::vector<page>& pages,
                  std::chrono::milliseconds limit, bool verbose) {
    for (const page& each : pages) {
        const auto answer = co_await with_timeout(get(trust, each, verbose), limit);
        if (!answer) co_return example::failed(each.url, answer.error());
        if (answer->status != 200) {
            std::cerr << each.url << ": status " << answer->status << '\n';
            co_return EXIT_FAILURE;
        }
        std::cout << answer->body;
    }
    co_return example::printed();
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "https_get URL... [--ca FILE] [--timeout-ms N] [--verbose yes] "
                             "[--backend automatic|epoll|io_uring]"};
    const std::chrono::milliseconds limit{given.number<std::uint32_t>(
        "time-out", given.option("--timeout-ms").value_or("10000"), 1, 3'600'000)};
    tls::client_config config;
    config.ca_file = given.option("--ca").value_or(""); // none: the system's
    const bool verbose = given.option("--verbose").has_value();
    const auto backend = given.backend();
    std::vector<page> pages{read_url(given, given.next("URL"))};
    while (!given.empty())
        pages.push_back(read_url(given, given.next("URL")));

    std::string detail;
    const auto trust = tls::context::client(config, &detail);
    if (!trust) return example::tls_failed("cannot use the certificates", trust.error(), detail);
    try {
        return run(get_all(*trust, pages, limit, verbose), {.backend = backend});
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
