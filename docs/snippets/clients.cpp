// The code of docs/usage/clients.md.

#include <simplenet/simplenet.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <array>
#include <chrono>
#include <iostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

//! [client]
task<result<>> follow(std::string host, std::uint16_t port) {
    tcp_client client{std::move(host), port};
    auto session = [](tcp_stream& stream) -> task<result<>> {
        buffered_reader reader{stream};
        for (;;) {
            const auto line = co_await reader.read_line(4096);
            if (!line) co_return fail(line);          // connect again
            if (*line == "bye") co_return result<>{}; // this is the end of run()
            std::cout << *line << '\n';
        }
    };
    co_return co_await client.run(session);
}
//! [client]

void configure(std::string host) {
    //! [options]
    tcp_client client{std::move(host),
                      5222,
                      {.backoff = {.initial = 100ms, .maximum = 30s, .factor = 2},
                       .connect = {.no_delay = true, .timeout = 5s},
                       .stable_after = 10s}};
    //! [options]

    //! [events]
    client.on_event = [](const client_event& event) {
        using std::chrono::milliseconds;
        const auto pause = std::chrono::ceil<milliseconds>(event.next_delay).count();
        switch (event.kind) {
        case client_event::connected:
            std::cerr << "connected\n";
            break;
        case client_event::connect_failed:
            std::cerr << "attempt " << event.attempt << ": " << event.error.message()
                      << ", again in " << pause << " ms\n";
            break;
        case client_event::disconnected:
            std::cerr << "lost: " << event.error.message() << ", again in " << pause << " ms\n";
            break;
        }
    };
    //! [events]
}

task<result<>> give_up_by_time(tcp_client& client, task<result<>> (*session)(tcp_stream&)) {
    //! [limit]
    const result<> ended = co_await with_timeout(client.run(session), 1h);
    //! [limit]
    co_return ended;
}

task<result<>> give_up_by_count(tcp_client& client, task<result<>> (*session)(tcp_stream&)) {
    //! [give up]
    std::stop_source give_up;
    client.on_event = [&](const client_event& event) {
        const bool failed = event.kind != client_event::connected;
        const bool hopeless = event.error == std::errc::permission_denied || event.attempt >= 10;
        if (failed && hopeless) give_up.request_stop();
    };
    const result<> ended = co_await with_stop(give_up.get_token(), client.run(session));
    //! [give up]
    co_return ended;
}

//! [silence]
task<result<>> heartbeat(tcp_stream& stream) {
    for (;;) {
        co_await or_return(co_await async_sleep(10s));
        co_await or_return(co_await async_write_all(stream, "ping\n"));
    }
}

task<result<>> read_lines(tcp_stream& stream) {
    buffered_reader reader{stream};
    for (;;) {
        // Three pings without an answer: the server is gone.
        const auto line = co_await with_timeout(reader.read_line(4096), 30s);
        if (!line) co_return fail(line);
        std::cout << *line << '\n';
    }
}

task<result<>> session_with_heartbeat(tcp_stream& stream) {
    const auto ended = co_await gather(heartbeat(stream), read_lines(stream));
    if (!ended) co_return fail(ended);
    co_return result<>{};
}
//! [silence]

//! [outbox]
/// Sends what other tasks put into `outbox`, on whichever connection there is.
class sender {
public:
    explicit sender(channel<std::string>& outbox)
        : outbox_{outbox} {}

    task<result<>> operator()(tcp_stream& stream) {
        for (;;) {
            if (unsent_.empty()) {
                auto message = co_await outbox_.receive();
                if (!message && message.error() == errc::end_of_stream) co_return result<>{};
                if (!message) co_return fail(message);
                unsent_ = *std::move(message);
            }
            const auto sent = co_await async_write_all(stream, unsent_);
            if (!sent) co_return fail(sent); // kept: the next connection begins with it
            unsent_.clear();
        }
    }

private:
    channel<std::string>& outbox_;
    std::string unsent_;
};
//! [outbox]

//! [pool]
task<result<>> ask(connection_pool<tcp_stream>& pool, std::string question) {
    auto lent = co_await pool.borrow("192.0.2.7:5432"); // an idle connection, or a new one
    if (!lent) co_return fail(lent);
    tcp_stream& stream = **lent;
    const auto sent = co_await async_write_all(stream, question + '\n');
    if (!sent) co_return fail(sent); // the connection is closed
    std::string answer;
    const auto length = co_await async_read_until(stream, answer, "\n", 4096);
    if (!length || *length != answer.size()) co_return fail(std::errc::bad_message);
    lent->give_back(); // everything was read: others can use it
    std::cout << answer;
    co_return result<>{};
}

task<> ask_all(std::vector<std::string> questions) {
    connection_pool pool{[](std::string_view key) -> task<result<tcp_stream>> {
        const auto to = endpoint::parse(key);
        if (!to) co_return fail(to);
        co_return co_await async_connect(*to, {.no_delay = true, .timeout = 5s});
    }};
    auto each = [&](task_group& group) -> task<> {
        for (const std::string& question : questions)
            group.spawn(ask(pool, question)); // at most 8 connections to one key
        co_return;
    };
    const auto asked = co_await with_group(each);
    if (!asked) std::cerr << asked.error().message() << '\n';
}
//! [pool]

//! [testing]
task<> a_client_waits_for_its_server() {
    tcp_client client{"127.0.0.1", 1}; // nobody listens
    auto session = [](tcp_stream&) -> task<result<>> { co_return result<>{}; };
    const auto ended = co_await with_timeout(client.run(session), 24h);
    if (ended || ended.error() != errc::deadline_exceeded) std::cerr << "wrong\n";
}

void test() {
    testing::manual_clock clock; // a day passes in milliseconds
    run(a_client_waits_for_its_server(), {.clock = &clock});
}
//! [testing]
