// A web server with a status server, for page_test.py. Its paths bring about what the page shows.
//
//     /              answers
//     /slow          answers after 20 ms
//     /fail          500
//     /backend/down  from here on one of two backends is left out; /backend/up ends that
//     /reload/failed a reload failed; /reload/ok one succeeded

#include "httpd/log/access_entry.hpp"
#include "httpd/process/listening_sockets.hpp"
#include "httpd/status/status_board.hpp"
#include "httpd/status/status_server.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace simplenet;
using namespace std::chrono_literals;

std::atomic<bool> backend_down = false;

std::vector<httpd::upstream_figures> upstreams() {
    std::vector<httpd::upstream_figures> made(2);
    made[0].site = made[1].site = "shop.example.org";
    made[0].route = made[1].route = "/api/*";
    made[0].backend.address = "127.0.0.1:9000";
    made[0].backend.answered = 48'211;
    made[0].backend.active = 3;
    made[1].backend.address = "unix:/run/app/worker-2.sock";
    made[1].backend.answered = 47'903;
    if (backend_down) {
        made[1].backend.failures = 4;
        made[1].backend.left_out = 7500ms;
    }
    return made;
}

http::router routes(httpd::status_board& board) {
    http::router made;
    made.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", "hello\n");
    });
    made.get("/slow", [](http::request&, http::response& answer) -> task<result<>> {
        const auto slept = co_await async_sleep(20ms);
        if (!slept) co_return fail(slept);
        co_return co_await answer.send("text/plain", "hello\n");
    });
    made.get("/fail", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.status(500).send("text/plain", "no\n");
    });
    made.get("/backend/{state}",
             [](http::request& asked, http::response& answer) -> task<result<>> {
                 backend_down = asked.parameter("state") == "down";
                 co_return co_await answer.send("text/plain", "ok\n");
             });
    made.get("/reload/{how}",
             [&board](http::request& asked, http::response& answer) -> task<result<>> {
                 board.reloaded(asked.parameter("how") == "ok");
                 co_return co_await answer.send("text/plain", "ok\n");
             });
    return made;
}

void answered(const http::answered_request& what, void* context) noexcept {
    httpd::access_entry entry;
    entry.status = what.status;
    entry.body_bytes = what.body_bytes;
    entry.duration = what.duration;
    entry.complete = what.complete;
    entry.site = what.asked.path() == "/slow" ? "shop.example.org" : "example.org";
    static_cast<httpd::status_board*>(context)->answered(entry);
}

/// The latest value of an option; 0: the kernel chooses.
std::uint16_t port_of(int argc, char** argv, std::string_view option) {
    int port = 0;
    for (int index = 1; index + 1 < argc; ++index)
        if (argv[index] == option) port = std::atoi(argv[index + 1]);
    return static_cast<std::uint16_t>(port);
}

} // namespace

int main(int argc, char** argv) {
    ::sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    auto group = event_loop_group::create({.loops = 2});
    if (!group) return EXIT_FAILURE;
    const auto board = std::make_shared<httpd::status_board>("0.1.0");
    http::server_options options;
    options.on_answered = answered;
    options.context = board.get();
    auto web = http::server::listen(*group, endpoint::loopback(port_of(argc, argv, "--web-port")),
                                    routes(*board), options);
    auto sockets =
        httpd::open_sockets(*group, endpoint::loopback(port_of(argc, argv, "--port")), {});
    if (!web || !sockets) return EXIT_FAILURE;
    auto status = httpd::status_server::adopt(*group, *std::move(sockets), board, {});
    if (!status) return EXIT_FAILURE;
    board->set_sources({.servers =
                            [&] {
                                return std::vector<httpd::server_figures>{
                                    {web->local_endpoint().to_string(), false, web->statistics()}};
                            },
                        .upstreams = upstreams,
                        .certificates =
                            [] {
                                const auto now = std::chrono::system_clock::now();
                                return std::vector<httpd::certificate_figures>{
                                    {"/etc/ssl/example.org.pem", now + 24h * 61},
                                    {"/etc/ssl/shop.example.org.pem", now + 24h * 9}};
                            }});
    std::cout << "listening on " << status->local_endpoint().to_string() << " ("
              << to_string((*group)[0].selected_backend()) << ")\n"
              << web->local_endpoint().to_string() << std::endl;
    int signal = 0;
    ::sigwait(&signals, &signal);
    board->set_sources({});
}
