// An HTTP server for the test suites of others: answers every request with its own body.
// Lesson: a fallback takes every method and path, also `*`; one line more serves https.

#include "arguments.hpp"
#if SIMPLENET_EXAMPLE_TLS
#include <simplenet/tls.hpp>
#endif

#include <simplenet/http.hpp>

#include <optional>
#include <string>

using namespace simplenet;

namespace {

constexpr std::size_t largest_body = std::size_t{64} * 1024 * 1024;

//! [echo]
task<result<>> echo(http::request& asked, http::response& answer) {
    const auto body = co_await asked.read_all(largest_body);
    if (!body) co_return fail(body); // answered with 400, 408 or 413
    const std::string_view text = body->empty() ? std::string_view{"ok"} : *body;
    co_return co_await answer.send("application/octet-stream", text);
}
//! [echo]

} // namespace

int main(int argc, char** argv) {
    const std::string_view usage =
        "http_echo_server [--address IP] [--port N] [--backend automatic|epoll|io_uring]"
        " [--tls CERTIFICATES KEY]";
    example::arguments given{argc, argv, usage};
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const auto port = given.port(given.option("--port").value_or("8080"), 0);
    http::run_server_options options;
    options.group.loop.backend = given.backend();
    options.server.limits.body = largest_body;
    options.on_listening = [](http::server& server, void*) {
        example::announce(server, event_loop::current()->selected_backend());
    };
    const auto certificates = given.option("--tls");
#if SIMPLENET_EXAMPLE_TLS
    std::optional<tls::context> context;
    if (certificates) {
        const std::string_view key = given.next("the file of the private key");
        const std::string_view protocols[]{"http/1.1", "http/1.0"};
        std::string detail;
        auto made = tls::context::server(
            {.certificate_chain_file = *certificates, .private_key_file = key, .alpn = protocols},
            &detail);
        if (!made) {
            std::cerr << detail << '\n';
            return example::failed("cannot use the certificates", made.error());
        }
        options.server.tls = &context.emplace(*std::move(made));
    }
#else
    if (certificates) given.wrong("this build has no TLS");
#endif
    given.finish();

    http::router routes;
    routes.fallback(echo);
    const auto ended = http::run_server({address, port}, std::move(routes), options);
    return ended ? 0 : example::failed("cannot serve", ended.error());
}
