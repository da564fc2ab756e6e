// The code of docs/usage/resolving-and-connecting.md.

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

task<result<>> use(tcp_stream stream);

task<result<>> talk() {
    //! [connect]
    auto stream = co_await async_connect("example.org", 80);
    if (!stream) co_return fail(stream);
    //! [connect]
    co_return co_await use(*std::move(stream));
}

task<> connect_with_options(std::string host) {
    //! [options]
    auto stream = co_await async_connect(host, 443,
                                         {.no_delay = true,
                                          .timeout = 5s, // includes the lookup
                                          .family = address_family::v4,
                                          .attempt_delay = 100ms});
    //! [options]
    static_cast<void>(stream);
}

//! [report]
task<result<tcp_stream>> connect_and_tell(std::string host, std::uint16_t port) {
    connect_report report;
    auto stream = co_await async_connect(host, port, {.timeout = 5s, .report = &report});
    for (const auto& each : report.attempts) {
        std::cerr << each.to.to_string() << ": "
                  << (each.error ? each.error.message() : "connected") << '\n';
    }
    if (report.lookup_v6) std::cerr << "no IPv6: " << report.lookup_v6.message() << '\n';
    co_return stream;
}
//! [report]

task<> resolve() {
    //! [resolve]
    const auto found = co_await with_timeout(async_resolve("example.org", "https"), 3s);
    if (found) {
        for (const endpoint& each : *found)
            std::cout << each.to_string() << '\n';
    } else if (found.error() == errc::name_not_found) {
        std::cout << "there is no such name\n";
    } else {
        std::cout << found.error().message() << ": try later\n";
    }
    //! [resolve]
}

task<> ask_for_less(std::string host) {
    //! [family]
    const auto v4_only = co_await async_resolve(host, 53, {.family = address_family::v4});
    const auto log_host = co_await async_resolve(host, "syslog", {.datagram = true});
    //! [family]
    static_cast<void>(v4_only);
    static_cast<void>(log_host);
}

void say(const std::error_code& error) {
    //! [category]
    if (error.category() == resolver_category())
        std::cerr << "the resolver says: " << error.message() << '\n'; // as in gai_strerror(3)
    //! [category]
}
