// A user's program with HTTP: it asks a server of its own, and compresses the answer, which needs
// zlib.
#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

using namespace simplenet;

namespace {

task<result<std::string>> ask(endpoint at) {
    http::client client;
    auto answer = co_await client.get("http://" + at.to_string() + "/hello");
    if (!answer) co_return fail(answer);
    co_return co_await answer->read_all(100'000);
}

} // namespace

int main() {
    const std::string text(20'000, 'x');
    http::router routes;
    routes.get("/hello", [&](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", text);
    });
    auto group = event_loop_group::create();
    if (!group) return 1;
    const std::string_view types[]{"text/plain"};
    auto server = http::server::listen(*group, endpoint::loopback(0), std::move(routes),
                                       {.compression = {.types = types}});
    if (!server) return 1;
    const auto got = run(ask(server->local_endpoint()));
    if (!got || *got != text) {
        std::fprintf(stderr, "no answer: %s\n", got ? "other text" : got.error().message().c_str());
        return 1;
    }
    std::puts("answered");
}
