// Prints the lines that a server sends, and stays connected: when the server is gone, it connects
// again, with growing random pauses. The line "bye" ends the program.
// Lesson: tcp_client makes the connections; a session, which is an ordinary coroutine, uses one.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <stop_token>
#include <string>

using namespace simplenet;
using namespace std::chrono_literals;

struct settings {
    std::string host;
    std::uint16_t port;
    std::string say;                // sent on each connection
    unsigned attempts;              // gives up after so many failures in a row; 0: never
    std::chrono::milliseconds idle; // a server that is silent for so long is lost
};

//! [session]
/// Uses one connection. Success ends the client; any error makes it connect again.
task<result<>> print_lines(tcp_stream& stream, const settings& given) {
    stream.set_idle_timeout(given.idle);
    if (!given.say.empty()) {
        const auto said = co_await async_write_all(stream, given.say + '\n');
        if (!said) co_return fail(said);
    }
    buffered_reader reader{stream};
    for (;;) {
        const auto line = co_await reader.read_line(4096);
        if (!line) co_return fail(line);
        std::cout << *line << std::endl; // flushed: the next line may take an hour
        if (*line == "bye") co_return result<>{};
    }
}
//! [session]

/// Tells the user what happens to the connection.
void report(const client_event& event) {
    if (event.kind == client_event::connected) {
        std::cerr << "connected\n";
        return;
    }
    std::cerr << (event.kind == client_event::disconnected ? "disconnected: " : "cannot connect: ")
              << event.error.message() << ", next attempt in "
              << std::chrono::ceil<std::chrono::milliseconds>(event.next_delay).count() << " ms\n";
}

//! [client]
task<result<>> stay_connected(const settings& given) {
    tcp_client client{given.host,
                      given.port,
                      {.backoff = {.initial = 50ms, .maximum = 5s}, .connect = {.timeout = 5s}}};
    std::stop_source give_up;
    client.on_event = [&](const client_event& event) {
        report(event);
        if (event.kind != client_event::connected && event.attempt == given.attempts)
            give_up.request_stop();
    };
    auto session = [&](tcp_stream& stream) { return print_lines(stream, given); };

    const result<> ended = co_await with_stop(give_up.get_token(), client.run(session));
    if (!ended && give_up.stop_requested()) co_return fail(std::errc::host_unreachable);
    co_return ended;
}
//! [client]

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "reconnecting_client HOST PORT [--say TEXT] [--attempts N] "
                             "[--idle-ms N] [--backend automatic|epoll|io_uring]"};
    settings chosen{};
    chosen.say = given.option("--say").value_or("");
    chosen.attempts = given.number<unsigned>(
        "number of attempts", given.option("--attempts").value_or("0"), 0, 1'000'000);
    chosen.idle = std::chrono::milliseconds{given.number<std::uint32_t>(
        "idle time", given.option("--idle-ms").value_or("60000"), 1, 3'600'000)};
    const auto backend = given.backend();
    chosen.host = given.next("HOST");
    chosen.port = given.port(given.next("PORT"));
    given.finish();

    try {
        const result<> ended = run(stay_connected(chosen), {.backend = backend});
        if (!ended && ended.error() != std::errc::operation_canceled) { // Ctrl-C is a normal end
            return example::failed("gave up", ended.error());
        }
        return example::printed();
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
