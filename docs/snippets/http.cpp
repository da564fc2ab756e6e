// The code of the pages about HTTP, and of its headers.

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>
#if SIMPLENET_SNIPPETS_TLS
#include <simplenet/tls.hpp>
#endif

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

//! [routes]
http::router make_routes() {
    http::router routes;
    routes.get("/users/{id}", [](http::request& asked, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", asked.parameter("id"));
    });
    routes.post("/users",
                [](http::request& asked, http::response& answer) -> task<result<>> {
                    const auto body = co_await asked.read_all(64 * 1024);
                    if (!body) co_return fail(body); // 413, 408 or 400
                    answer.status(201).set("Location", "/users/1");
                    co_return co_await answer.send("text/plain", *body);
                },
                {.body = 64 * 1024});
    return routes;
}
//! [routes]

//! [without a coroutine]
http::now_or_task<result<>> version(http::request&, http::response& answer) {
    return answer.send("text/plain", "1.0\n");
}
//! [without a coroutine]

//! [server]
task<result<>> serve_for_a_minute(event_loop_group& group) {
    auto server = http::server::listen(group, {ip_address::loopback_v4(), 8080}, make_routes());
    if (!server) co_return fail(server);
    const auto slept = co_await async_sleep(1min);
    if (!slept) co_return fail(slept);
    const shutdown_report report = co_await server->shutdown(10s);
    std::printf("%zu connections ended by themselves\n", report.drained);
    co_return result<>{};
}
//! [server]

//! [options]
result<shutdown_report> serve_with_options(http::router routes, std::stop_token stop) {
    http::run_server_options options;
    options.server.limits.body = 64 * 1024; // see the table
    options.server.limits.keep_alive = 15s;
    options.server.server.max_connections = 10'000; // those of every server
    options.group.loops = 2;
    options.grace = 5s;
    return http::run_server(endpoint::any(8080), std::move(routes), options, std::move(stop));
}
//! [options]

//! [shared]
class counter {
public:
    task<result<>> operator()(http::request&, http::response& answer) {
        const std::string text = std::to_string(++*count_) + '\n';
        co_return co_await answer.send("text/plain", text);
    }

private:
    // Handlers are copied into the router, and run on several loops at once.
    std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
};
//! [shared]

//! [errors]
task<result<>> square(http::request& asked, http::response& answer) {
    const auto body = co_await asked.read_all(100);
    if (!body) co_return fail(body); // the client's fault: 413, 408 or 400
    std::uint32_t number = 0;
    const char* const end = body->data() + body->size();
    const auto parsed = std::from_chars(body->data(), end, number);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
        co_return co_await answer.status(422).send("text/plain", "a number, please\n");
    }
    const std::string text = std::to_string(std::uint64_t{number} * number) + '\n';
    co_return co_await answer.send("text/plain", text);
}
//! [errors]

//! [exceptions]
void report(std::exception_ptr thrown, void*) {
    try {
        std::rethrow_exception(std::move(thrown));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "a handler failed: %s\n", error.what());
    } catch (...) {
        std::fputs("a handler failed\n", stderr);
    }
}

http::server_options with_reports() {
    http::server_options options;
    options.server.on_handler_exception = report;
    return options;
}
//! [exceptions]

//! [compression]
constexpr std::array<std::string_view, 2> compressed{"text/*", "application/json"};

http::server_options with_compression() {
    http::server_options options;
    options.compression.types = compressed;
    return options;
}
//! [compression]

//! [proxy]
constexpr std::array<std::string_view, 1> load_balancers{"10.0.0.0/8"};

http::server_options behind_a_load_balancer() {
    http::server_options options;
    options.server.proxy = proxy_protocol::required;
    options.server.proxy_sources = load_balancers;
    return options;
}
//! [proxy]

//! [metrics]
task<result<>> metrics(http::request&, http::response& answer) {
    std::ostringstream text;
    write_metrics(text);
    const std::string all = text.str();
    co_return co_await answer.send("text/plain; version=0.0.4", all);
}
//! [metrics]

//! [statistics]
void print_statistics(const http::server& server) {
    const http::server_statistics all = server.statistics();
    std::printf("%llu requests on %llu connections, %zu are open, %llu handlers failed\n",
                static_cast<unsigned long long>(all.requests),
                static_cast<unsigned long long>(all.accepted), all.open,
                static_cast<unsigned long long>(all.failed));
}
//! [statistics]

//! [lines]
/// A body is an async_reader, so all of the library reads it.
task<result<>> count_lines(http::request& asked, http::response& answer) {
    buffered_reader<http::request&> lines{asked};
    unsigned count = 0;
    auto line = co_await lines.read_line(4096);
    for (; line; line = co_await lines.read_line(4096))
        ++count;
    if (line.error() != errc::end_of_stream) co_return fail(line);
    const std::string text = std::to_string(count) + " lines\n";
    co_return co_await answer.send("text/plain", text);
}
//! [lines]

//! [stream]
task<result<>> count_up(http::request&, http::response& answer) {
    answer.set("Content-Type", "text/plain");
    for (int number = 1; number <= 1000; ++number) {
        const std::string line = std::to_string(number) + '\n';
        const auto sent = co_await async_write_all(answer, line);
        if (!sent) co_return fail(sent); // the client is gone
    }
    co_return result<>{}; // only this makes the answer complete
}
//! [stream]

//! [echo body]
task<result<>> send_back(http::request& asked, http::response& answer) {
    const auto copied = co_await async_copy(asked, answer);
    if (!copied) co_return fail(copied);
    co_return result<>{};
}
//! [echo body]

//! [continue]
task<result<>> take_picture(http::request& asked, http::response& answer) {
    // Nothing was read yet, so a client that waits for `100 Continue` does not send the body.
    if (asked.fields().find("Content-Type") != "image/png") {
        co_return co_await answer.status(415).send("text/plain", "a picture, please\n");
    }
    const auto body = co_await asked.read_all(1024 * 1024); // sends `100 Continue`
    if (!body) co_return fail(body);
    answer.status(204);
    co_return result<>{};
}
//! [continue]

bool may_read(const http::request& asked) {
    return asked.fields().find("Cookie").has_value();
}

//! [send_file]
task<result<>> send_report(http::request& asked, http::response& answer) {
    if (!may_read(asked)) co_return co_await answer.status(403).send({}, {});
    const auto open = [] { return unique_fd{::open("/srv/report.pdf", O_RDONLY | O_CLOEXEC)}; };
    const auto file = co_await run_blocking(open);
    struct stat state{};
    if (!file || ::fstat(file.get(), &state) != 0) {
        co_return co_await answer.status(404).send({}, {});
    }
    http::file_options options;
    options.content_type = "application/pdf";
    options.last_modified = state.st_mtime;
    const auto size = static_cast<std::uint64_t>(state.st_size);
    co_return co_await answer.send_file(file.get(), size, options);
}
//! [send_file]

//! [files]
constexpr std::array<std::string_view, 2> indexes{"index.html", "index.htm"};

http::router site() {
    http::static_options options;
    options.index = indexes;
    options.cache_control = "max-age=3600";
    http::router routes;
    routes.files("/", "/srv/www", options); // throws if the directory cannot be opened
    routes.get("/report", send_report);     // a handler: more specific, so it wins
    return routes;
}
//! [files]

//! [websocket]
task<> echo(http::websocket& peer) {
    while (auto message = co_await peer.read_message()) {
        const auto sent = co_await peer.write_message(message->kind, message->data);
        if (!sent) break;
    }
}

http::router with_websockets() {
    http::router routes;
    routes.websocket("/echo", echo);
    return routes;
}
//! [websocket]

//! [file handler]
/// The application has the paths that no file has.
class files_first {
public:
    explicit files_first(std::string_view directory)
        : files_{directory} {}

    task<result<>> operator()(http::request& asked, http::response& answer) {
        const result<unsigned> left = co_await files_.attempt(asked, answer);
        if (!left) co_return fail(left);
        if (*left == 0) co_return result<>{};
        answer.reset(); // of a 405 there is an Allow
        asked.rewrite("/app");
        co_return co_await answer.send("text/plain", asked.path());
    }

private:
    http::file_handler files_;
};
//! [file handler]

//! [websocket request]
task<> visit(http::request& asked, http::websocket& peer) {
    std::string greeting = "Welcome to " + std::string{asked.parameter("room")};
    if (asked.secure()) greeting += ", in private";
    const auto sent = co_await peer.write_message(greeting);
    if (sent) co_await echo(peer);
}

void add_rooms(http::router& routes) {
    routes.websocket("/rooms/{room}", visit);
}
//! [websocket request]

std::string user_of(const http::fields& fields) {
    return std::string{fields.find("Cookie").value_or("")};
}

//! [accept websocket]
task<result<>> enter(http::request& asked, http::response& answer) {
    const std::string user = user_of(asked.fields()); // by a cookie
    if (user.empty()) co_return co_await answer.status(401).send("text/plain", "log in\n");
    auto peer = co_await answer.accept_websocket();
    if (!peer) co_return fail(peer); // no handshake, or of a foreign page; it was told so
    const auto sent = co_await peer->write_message("Welcome, " + user);
    if (sent) co_await echo(*peer);
    co_return co_await peer->close();
}

void add_members(http::router& routes) {
    routes.get("/members", enter);
}
//! [accept websocket]

//! [websocket goodbye]
task<> count_visitors(http::websocket& peer) {
    const auto first = co_await when_any(echo(peer), server_stop());
    if (first.index == 0) co_return;
    std::ignore = co_await peer.write_message("We are back in a minute.");
    std::ignore = co_await peer.close(1012, "restart"); // RFC 6455, 7.4; the registry of IANA
}

void add_visitors(http::router& routes) {
    http::websocket_options options;
    options.close_at_shutdown = false;
    routes.websocket("/visitors", count_visitors, options);
}
//! [websocket goodbye]

//! [websocket options]
constexpr std::array<std::string_view, 1> our_pages{"https://www.example.org"};
constexpr std::array<std::string_view, 2> protocols{"chat.v2", "chat.v1"};

void add_chat(http::router& routes) {
    http::websocket_options options;
    options.origins = our_pages; // beside the origin of the server itself
    options.protocols = protocols;
    options.message_limit = 4096;
    routes.websocket("/chat", echo, options);
}
//! [websocket options]

//! [upgrade]
task<result<>> switch_protocols(http::request&, http::response& answer) {
    auto stream = co_await answer.upgrade("lines");
    if (!stream) co_return fail(stream); // the client did not ask for it
    std::ignore = co_await async_write_all(*stream, "hello\n");
    co_return result<>{}; // closes the connection
}
//! [upgrade]

//! [get]
task<result<std::string>> fetch(http::client& client, std::string_view url) {
    auto answer = co_await client.get(url);
    if (!answer) co_return fail(answer);
    if (answer->status() != 200) co_return fail(std::errc::no_message_available);
    co_return co_await answer->read_all(1024 * 1024);
}
//! [get]

//! [send]
task<result<unsigned>> add_user(http::client& client, std::string_view json) {
    http::fields fields;
    fields.set("Content-Type", "application/json");
    http::client_request asked;
    asked.method = "POST";
    asked.url = "https://example.org/users";
    asked.fields = &fields;
    asked.body = json; // borrowed until the answer has ended
    auto answer = co_await client.send(asked);
    if (!answer) co_return fail(answer);
    // The rest of the request leaves meanwhile, and the connection can be used again.
    const auto text = co_await answer->read_all(64 * 1024);
    if (!text) co_return fail(text);
    co_return answer->status();
}
//! [send]

//! [upload]
/// Sends what `from` gives, of any size, in chunks.
task<result<unsigned>> upload(http::client& client, tcp_stream& from) {
    http::client_request asked;
    asked.method = "PUT";
    asked.url = "https://example.org/backup";
    asked.stream = from;
    asked.expect_continue = true; // a refusal costs no body
    auto answer = co_await client.send(asked);
    if (!answer) co_return fail(answer);
    // The rest of the request leaves meanwhile, and the connection can be used again.
    const auto text = co_await answer->read_all(64 * 1024);
    if (!text) co_return fail(text);
    co_return answer->status();
}
//! [upload]

#if SIMPLENET_SNIPPETS_TLS
//! [tls]
int serve_securely(http::router routes) {
    static constexpr std::array<std::string_view, 2> offered{"http/1.1", "http/1.0"};
    std::string detail;
    const auto certificates = tls::context::server({.certificate_chain_file = "fullchain.pem",
                                                    .private_key_file = "privkey.pem",
                                                    .alpn = offered},
                                                   &detail);
    if (!certificates) {
        std::fprintf(stderr, "%s\n", detail.c_str());
        return 1;
    }
    http::run_server_options options;
    options.server.tls = &*certificates;
    const auto ended = http::run_server(endpoint::any(8443), std::move(routes), options);
    return ended ? 0 : 1;
}
//! [tls]
#endif

} // namespace

namespace snippets {

void all_routes(http::router& routes) {
    routes.get("/count", counter{})
        .post("/square", square)
        .get("/metrics", metrics)
        .get("/version", version);
    routes.post("/lines", count_lines).get("/numbers", count_up).post("/back", send_back);
    routes.put("/picture", take_picture)
        .get("/report", send_report)
        .get("/upgrade", switch_protocols);
    add_chat(routes);
    add_rooms(routes);
    add_members(routes);
    add_visitors(routes);
}

task<> all_requests(tcp_stream from) {
    http::client client;
    (void)co_await fetch(client, "https://example.org/");
    (void)co_await add_user(client, "{}");
    (void)co_await upload(client, from);
}

int all_of_http(event_loop_group& group, const http::server& server) {
    http::router routes = site();
    all_routes(routes);
    print_statistics(server);
    (void)http::server::listen(group, endpoint::any(8080), with_websockets(), with_reports());
    (void)http::server::listen(group, endpoint::any(8080), routes, behind_a_load_balancer());
    (void)http::server::listen(group, endpoint::any(8080), routes, with_compression());
    (void)serve_with_options(routes, {});
#if SIMPLENET_SNIPPETS_TLS
    (void)serve_securely(routes);
#endif
    return run(serve_for_a_minute(group)) ? 0 : 1;
}

} // namespace snippets
