// crowd_idioms IDIOM: a server of one idiom from README.md and docs/usage/, for the crowd.
//
// pages.hpp has the code of the pages. This file gives each idiom a client. idioms.py maps the
// pages to these names.

#include "arguments.hpp"
#include "pages.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <future>
#include <iostream>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <sys/socket.h>

namespace {

/// State that all clients of a server share.
struct shared {
    endpoint upstream; // an echo server
    event_loop* other = nullptr;
    std::list<page::writing::client> room;
    page::synchronisation::account account;
    tcp_stream* ledger = nullptr;
    channel<page::synchronisation::question>* questions = nullptr;
    async_semaphore at_once{4};
    page::synchronisation::mailbox box;
};

// --- serving one client of each idiom ------------------------------------------------------------

task<> serve_readme(shared&, tcp_stream client) {
    return page::readme::serve(std::move(client));
}

// first.cpp, errors.cpp [read all], [look]: a server that asks another one for each client.
task<> serve_ask(shared& all, tcp_stream client) {
    const auto answer = co_await with_timeout(page::coroutines::ask(all.upstream, "ping"), 5s);
    if (answer) static_cast<void>(co_await async_write_all(client, *answer));
}

task<> serve_ask_briefly(shared& all, tcp_stream client) {
    const auto answer = co_await page::coroutines::ask_briefly(all.upstream, "pong");
    if (answer) static_cast<void>(co_await async_write_all(client, *answer));
}

task<> serve_together(shared& all, tcp_stream client) {
    co_await page::coroutines::together(all.upstream, all.upstream);
    static_cast<void>(co_await async_write_all(client, "done\n"));
}

task<> serve_run_on(shared& all, tcp_stream client) {
    return page::coroutines::answer_with_a_report(*all.other, std::move(client), 11);
}

task<> serve_or_return(shared&, tcp_stream client) {
    auto body = [](tcp_stream& stream) -> task<result<>> {
        while (true) {
            const auto bytes = co_await or_return(stream.receive());
            co_await or_return(async_write_all(stream, bytes));
        }
    };
    static_cast<void>(co_await body(client));
}

task<> serve_timeout(shared&, tcp_stream client) {
    std::array<std::byte, 512> buffer;
    while (auto count = co_await with_timeout(client.read_some(buffer), 30s)) {
        const auto some = std::span<const std::byte>{buffer}.first(*count);
        if (!co_await with_timeout(async_write_all(client, some), 30s)) break;
    }
}

task<> serve_idle(shared&, tcp_stream client) {
    return page::cancellation::serve(std::move(client));
}

// The same with a limit short enough for a test to wait for it.
task<> serve_idle_for_a_second(shared&, tcp_stream client) {
    client.set_idle_timeout(1s);
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

task<> serve_polite(shared&, tcp_stream client) {
    return page::cancellation::polite(std::move(client));
}

task<> serve_loop(shared& all, tcp_stream client) {
    auto server = co_await async_connect(all.upstream);
    if (!server) co_return;
    co_await page::cancellation::copy(std::move(client), *std::move(server));
}

task<> serve_patiently(shared&, tcp_stream client) {
    std::array<std::byte, 4096> buffer;
    while (auto count = co_await client.read_some(buffer)) {
        const const_buffer some = std::span<const std::byte>{buffer}.first(*count);
        if (!co_await page::cancellation::send_patiently(client, some)) break;
    }
}

task<> serve_lines(shared&, tcp_stream client) {
    return page::streams::serve(std::move(client));
}

task<> serve_messages(shared&, tcp_stream client) {
    buffered_reader<tcp_stream> reader{std::move(client)};
    while (const auto body = co_await page::streams::read_message(reader)) {
        if (!co_await async_write_all(reader.stream(), *body)) break;
    }
    co_await page::streams::why(reader);
}

task<> serve_read_until(shared&, tcp_stream client) {
    std::string rest;
    while (const auto head = co_await page::streams::read_head(client, rest)) {
        if (!co_await async_write_all(client, *head)) break;
    }
}

task<> serve_split(shared&, tcp_stream client) {
    return page::streams::converse(std::move(client), "how are you?\n");
}

task<> serve_any(shared&, tcp_stream client) {
    return page::streams::greet(any_stream{std::move(client)});
}

task<> serve_counting(shared&, tcp_stream client) {
    page::streams::counting_stream stream{std::move(client)};
    std::array<std::byte, 4096> buffer;
    while (auto count = co_await stream.read_some(buffer)) {
        if (!co_await async_write_all(stream, std::span<const std::byte>{buffer}.first(*count)))
            break;
    }
}

task<> serve_broadcast(shared& all, tcp_stream client) {
    const auto self = all.room.emplace(all.room.end(), std::move(client));
    buffered_reader<tcp_stream&> reader{self->stream()};
    while (const auto line = co_await reader.read_line(2000)) {
        const std::string whole = std::string{*line} + '\n';
        page::writing::tell_all(all.room, whole);
    }
    all.room.erase(self);
}

task<> serve_frames(shared&, tcp_stream client) {
    queued_writer<tcp_stream> writer{std::move(client)};
    static_cast<void>(co_await page::writing::stream_frames(writer));
}

// The echo of a queue with back-pressure: if the client does not read, the server stops reading
// too.
task<> serve_queued(shared&, tcp_stream client) {
    constexpr watermarks small{.low = 4096, .high = 16384, .limit = 65536}; // bytes
    queued_writer writer{std::move(client), small};
    std::array<char, 4096> buffer;
    while (const auto count = co_await writer.stream().read_some(buffer)) {
        const auto taken = writer.enqueue(std::string_view{buffer.data(), *count});
        if (!taken) co_return;
        if (*taken == backpressure::high_watermark && !co_await writer.writable()) co_return;
    }
    static_cast<void>(co_await with_timeout(writer.graceful_shutdown(), 5s));
}

task<> serve_goodbye(shared&, tcp_stream client) {
    return page::writing::ends(queued_writer<tcp_stream>{std::move(client)});
}

task<> serve_copy(shared&, tcp_stream client) {
    static_cast<void>(co_await async_copy(client, client));
}

task<> swallow(local_stream from) {
    while (const auto bytes = co_await from.receive()) {
    }
}

task<> serve_copy_to_local(shared&, tcp_stream client) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
        co_return;
    unique_fd here{ends[0]};
    unique_fd there{ends[1]};
    auto ours = nonblocking::local_stream::adopt(std::move(here));
    auto theirs = nonblocking::local_stream::adopt(std::move(there));
    if (!ours || !theirs) co_return;
    local_stream to{*std::move(ours)};
    auto swallowing = spawn(swallow(local_stream{*std::move(theirs)}));
    co_await page::writing::copies(client, to);
    to.close();
    co_await swallowing;
}

task<> serve_proxy(shared& all, tcp_stream client) {
    auto server = co_await with_timeout(async_connect(all.upstream), 10s);
    if (!server) co_return;
    co_await page::writing::proxies(client, *server);
}

task<> serve_send_file(shared&, tcp_stream client) {
    const unique_fd file{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
    if (!file) co_return;
    static_cast<void>(co_await async_send_file(client, file.get(), 0, 200'000));
}

task<> serve_read_all(shared&, tcp_stream client) {
    const auto text = co_await with_timeout(page::errors::read_all(client), 30s);
    if (text) co_await page::errors::transfer(client, *text);
}

task<> serve_digits(shared&, tcp_stream client) {
    while (const auto digit = co_await page::errors::read_digit(client)) {
        if (!co_await async_write_all(client, std::to_string(*digit + 1))) break;
    }
}

task<> serve_named(shared&, tcp_stream client) {
    return page::seeing_inside::serve(std::move(client));
}

task<> serve_mutex(shared& all, tcp_stream client) {
    buffered_reader reader{std::move(client)};
    while (const auto line = co_await reader.read_line(2000)) {
        const std::string text{*line};
        if (!co_await all.account.deposit(*all.ledger, text)) break;
        if (!co_await async_write_all(reader.stream(), "deposited\n")) break;
    }
}

task<> serve_semaphore(shared& all, tcp_stream client) {
    buffered_reader reader{std::move(client)};
    while (const auto line = co_await reader.read_line(2000)) {
        const std::string name{*line};
        auto fetched = co_await page::synchronisation::fetch_politely(all.at_once, name);
        if (!fetched || !co_await async_write_all(reader.stream(), *fetched + '\n')) break;
    }
}

task<> serve_questions(shared& all, tcp_stream client) {
    buffered_reader reader{std::move(client)};
    while (const auto line = co_await reader.read_line(2000)) {
        std::string text{*line};
        auto answer = co_await page::synchronisation::ask(*all.questions, std::move(text));
        if (!answer || !co_await async_write_all(reader.stream(), *answer + '\n')) break;
    }
}

task<> serve_letters(shared& all, tcp_stream client) {
    buffered_reader reader{std::move(client)};
    while (const auto line = co_await reader.read_line(2000)) {
        all.box.letters.emplace_back(*line);
        all.box.changed.notify_one();
        auto letter = co_await page::synchronisation::take_letter(all.box);
        if (!letter || !co_await async_write_all(reader.stream(), *letter + '\n')) break;
    }
}

task<> serve_handed_over(shared&, tcp_stream client) {
    auto socket = co_await page::sockets::hand_over(std::move(client));
    // So little that it fits into an empty buffer and does not block.
    if (socket) static_cast<void>(socket->write_all("handed over\n"));
}

task<> serve_readiness(shared&, tcp_stream client) {
    auto released = co_await std::move(client).release();
    if (!released) co_return;
    nonblocking::tcp_stream socket = std::move(released->socket);
    std::array<std::byte, 4096> buffer;
    while (true) {
        const auto count = socket.read_some(buffer);
        if (!count && count.error() == std::errc::operation_would_block) {
            const auto readable = co_await async_wait_readable(socket.native_handle());
            if (!readable) co_return;
            continue;
        }
        if (!count) co_return;
        for (auto rest = std::span<const std::byte>{buffer}.first(*count); !rest.empty();) {
            const auto sent = socket.write_some(rest);
            if (sent) {
                rest = rest.subspan(*sent);
                continue;
            }
            if (sent.error() != std::errc::operation_would_block) co_return;
            const auto writable = co_await async_wait_writable(socket.native_handle());
            if (!writable) co_return;
        }
    }
}

task<> serve_greeting(shared&, tcp_stream client) {
    connection_info info;
    if (const auto peer = client.remote_endpoint()) info.peer = *peer;
    std::ignore = co_await page::servers::greet(std::move(client), info);
}

task<> serve_requests(shared&, tcp_stream client) {
    return page::servers::answer_requests(std::move(client));
}

task<> serve_with_lengths(shared&, tcp_stream client) {
    return page::streams::answer(std::move(client));
}

task<> serve_lingering(shared&, tcp_stream client) {
    return page::streams::refuse(std::move(client));
}

task<> serve_in_batches(shared&, tcp_stream client) {
    std::string requests;
    std::ignore = co_await page::streams::serve_batches(client, requests);
}

task<> serve_from_scratch(shared&, tcp_stream client) {
    std::ignore = co_await page::writing::answer_requests(client);
}

// --- the server ----------------------------------------------------------------------------------

using server = task<> (*)(shared&, tcp_stream);
struct idiom {
    std::string_view name;
    server serve;
};
constexpr idiom idioms[] = {
    {"readme", serve_readme},
    {"ask", serve_ask},
    {"ask-briefly", serve_ask_briefly},
    {"together", serve_together},
    {"run-on", serve_run_on},
    {"or-return", serve_or_return},
    {"timeout", serve_timeout},
    {"idle", serve_idle},
    {"idle-1s", serve_idle_for_a_second},
    {"polite", serve_polite},
    {"loop", serve_loop},
    {"patiently", serve_patiently},
    {"lines", serve_lines},
    {"messages", serve_messages},
    {"read-until", serve_read_until},
    {"split", serve_split},
    {"any", serve_any},
    {"counting", serve_counting},
    {"broadcast", serve_broadcast},
    {"frames", serve_frames},
    {"queued", serve_queued},
    {"goodbye", serve_goodbye},
    {"copy", serve_copy},
    {"copy-to-local", serve_copy_to_local},
    {"proxy", serve_proxy},
    {"send-file", serve_send_file},
    {"read-all", serve_read_all},
    {"digits", serve_digits},
    {"named", serve_named},
    {"mutex", serve_mutex},
    {"semaphore", serve_semaphore},
    {"questions", serve_questions},
    {"letters", serve_letters},
    {"handed-over", serve_handed_over},
    {"readiness", serve_readiness},
    {"greeting", serve_greeting},
    {"requests", serve_requests},
    {"lengths", serve_with_lengths},
    {"lingering", serve_lingering},
    {"batches", serve_in_batches},
    {"scratch", serve_from_scratch},
};

task<> answer_questions(channel<page::synchronisation::question>& questions) {
    while (auto asked = co_await questions.receive())
        asked->answer.send(std::move(asked->text));
}

task<> drain(tcp_stream from) {
    while (const auto bytes = co_await from.receive()) {
    }
}

task<result<std::pair<tcp_stream, tcp_stream>>> connected_pair(tcp_listener& listener) {
    const auto at = listener.local_endpoint();
    if (!at) co_return fail(at);
    auto both = co_await gather(listener.accept(), async_connect(*at));
    if (!both) co_return fail(both);
    auto& [first, second] = *both;
    co_return std::pair{std::move(first), std::move(second)};
}

task<result<>> listen(tcp_listener listener, server serve, endpoint upstream, event_loop* other) {
    channel<page::synchronisation::question> questions{16};
    auto [ledger, book] = or_throw(co_await connected_pair(listener));
    shared all;
    all.upstream = upstream;
    all.other = other;
    all.ledger = &ledger;
    all.questions = &questions;
    example::announce(listener);
    co_return co_await with_group([&](task_group& clients) -> task<result<>> {
        clients.spawn(answer_questions(questions));
        clients.spawn(drain(std::move(book)));
        while (true) {
            auto client = co_await listener.accept();
            if (!client) co_return fail(client);
            clients.spawn(serve(all, *std::move(client)));
        }
    });
}

/// The room of the page about callbacks, on a server that accepts by itself.
task<> serve_room(event_loop_group& group, std::uint16_t port) {
    signal_set signals{SIGINT, SIGTERM};
    page::handlers::room here;
    callbacks::handlers handlers;
    handlers.on_connection = [&](const auto& member) { here.on_connection(member); };
    handlers.on_message = [&](const auto& member, auto& input) { here.on_message(member, input); };
    callbacks::server server{group, endpoint::loopback(port), handlers};
    server.start();
    example::announce(server, group[0].selected_backend());
    std::ignore = co_await signals.next();
    here.close();
    std::ignore = co_await server.shutdown(1s);
}

/// A loop on a thread of its own.
class beside {
public:
    explicit beside(const loop_options& options)
        : thread_{[this, options] {
            auto loop = or_throw(event_loop::create(options));
            loop.spawn([]() -> task<> { static_cast<void>(co_await async_sleep(24h)); });
            made_.set_value(&loop);
            loop.run();
        }}
        , loop_{made_.get_future().get()} {}
    ~beside() {
        loop_->stop();
        thread_.join();
    }
    beside(const beside&) = delete;
    beside& operator=(const beside&) = delete;

    event_loop& loop() { return *loop_; }

private:
    std::promise<event_loop*> made_;
    std::thread thread_;
    event_loop* loop_;
};

} // namespace

int main(int argc, char** argv) {
    example::arguments given{
        argc, argv,
        "crowd_idioms IDIOM|list [--port N] [--upstream IP:PORT] [--receive-pool BYTES] "
        "[--backend automatic|epoll|io_uring]"};
    const auto port = given.port(given.option("--port").value_or("0"), 0);
    const auto upstream = endpoint::parse(given.option("--upstream").value_or("127.0.0.1:9"));
    loop_options options{.backend = given.backend()};
    if (const auto pool = given.option("--receive-pool"))
        options.receive_pool = given.number<std::size_t>("receive pool", *pool, 1, 1UL << 30U);
    const auto name = given.next("IDIOM");
    given.finish();
    if (name == "list") {
        for (const idiom& each : idioms)
            std::cout << each.name << '\n';
        std::cout << "room\n";
        return example::printed();
    }
    if (name == "room") {
        auto group = or_throw(event_loop_group::create({.loops = 2, .loop = options}));
        run(serve_room(group, port), options);
        return 0;
    }
    const auto* const found = std::ranges::find(idioms, name, &idiom::name);
    if (found == std::ranges::end(idioms) || !upstream) given.wrong("no such idiom");

    // Takes over a foreign descriptor as in docs/usage/blocking-and-nonblocking.md.
    auto bound = nonblocking::tcp_listener::bind(endpoint::loopback(port));
    if (!bound) return example::failed("cannot listen", bound.error());
    auto listener = page::sockets::take_over(bound->release().release());
    if (!listener) return example::failed("cannot listen", listener.error());
    try {
        std::optional<beside> other; // a thread only where an idiom needs it
        if (name == "run-on") other.emplace(options);
        event_loop* const there = other ? &other->loop() : nullptr;
        const auto ended =
            run(listen(*std::move(listener), found->serve, *upstream, there), options);
        if (ended || ended.error() == std::errc::operation_canceled) return 0; // an orderly end
        return example::failed("cannot accept connections", ended.error());
    } catch (const std::system_error& error) { // no loop could be created
        return example::failed("cannot use " + std::string{to_string(options.backend)},
                               error.code());
    }
}
