// Connections: made, refused, partitioned, half-closed and closed in the middle.

#include "simulation/scenario_parts.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

namespace {

using namespace std::chrono_literals;

// --- a server and its clients

/// Waits without taking, takes without waiting, and answers in two parts. False: it is over.
task<bool> echo_what_is_there(world& in, tcp_stream& stream) {
    if (!co_await stream.readable()) co_return false;
    auto lease = stream.try_receive();
    // This network may deny bytes that a peek has shown; the next wait finds them again.
    if (!lease) co_return lease.error() == std::errc::operation_would_block;
    const received front = lease->split(in.random.size_up_to(lease->size()));
    const auto begun = co_await async_write_all(stream, front, {.more = true});
    if (!begun) co_return false;
    const auto now = stream.try_write_some(*lease);
    if (!now && now.error() != std::errc::operation_would_block) co_return false;
    const const_buffer rest = *lease;
    const auto sent = co_await async_write_all(stream, rest.subspan(now.value_or(0)));
    co_return sent.has_value();
}

task<> serve_echo(world& in, tcp_stream stream) {
    std::vector<std::byte> bytes(1 + in.random.size_up_to(5000));
    for (;;) {
        if (in.random.chance(200)) {
            const bool goes_on = co_await echo_what_is_there(in, stream);
            if (!goes_on) break;
        } else if (in.random.chance(300)) {
            auto lease = co_await stream.receive();
            if (!lease) break;
            const auto sent = co_await async_write_all(stream, const_buffer{*lease});
            if (!sent) co_return;
        } else {
            const auto count = co_await stream.read_some(mutable_buffer{bytes});
            if (!count) break;
            const auto sent = co_await async_write_all(stream, const_buffer{bytes}.first(*count));
            if (!sent) co_return;
        }
    }
    static_cast<void>(stream.shutdown_write());
}

task<> accept_clients(world& in, tcp_listener& listener) {
    task_group connections;
    for (;;) {
        auto stream = co_await listener.accept();
        if (!stream) {
            in.expect(stream.error() == std::errc::operation_canceled, "accept() continues");
            break;
        }
        if (in.random.chance(30)) in.net.abort(stream->native_handle());
        connections.spawn(serve_echo(in, *std::move(stream)));
    }
    static_cast<void>(co_await connections.join());
}

struct client_outcome {
    flow out;
    flow back;
};

task<> echo_client(world& in, std::uint32_t key, client_outcome& told) {
    static_cast<void>(co_await async_sleep(in.some_time(3ms)));
    auto stream = co_await async_connect(server_address());
    if (!stream) {
        in.expect(is_loss_of_the_connection(stream.error()) ||
                      stream.error() == std::errc::timed_out,
                  "a connect to a server that lives fails only with its connection");
        co_return;
    }
    told.out.key = told.back.key = key;
    const std::size_t size = in.random.size_up_to(60'000);
    const manners how = manners::drawn_from(in.random);
    auto sending = spawn(send_content(in, *stream, told.out, size, how));
    const manners back = manners::drawn_from(in.random);
    const auto failed = co_await receive_content(in, *stream, told.back, size, back);
    const auto not_sent = co_await sending;
    in.expect(told.back.received <= size, "an echo is no longer than what was sent");
    if (!failed) {
        in.expect(!not_sent && told.back.received == size, "an echo is complete");
        const auto closed = stream->shutdown_write(); // unless it was aborted
        in.expect(closed || is_loss_of_the_connection(closed.error()),
                  "a live stream can be half-closed");
        std::array<std::byte, 10> rest{};
        const auto end = co_await stream->read_some(mutable_buffer{rest});
        in.expect(!end && is_loss_of_the_connection(end.error()), "after the echo comes the end");
    } else {
        in.expect(is_loss_of_the_connection(failed),
                  "a stream ends only because its connection is gone");
    }
}

task<> echo(world& in) {
    listen_options options;
    options.backlog = static_cast<int>(in.random.below(4));
    tcp_listener listener = or_throw(tcp_listener::bind(server_address(), options));
    auto server = spawn(accept_clients(in, listener));
    auto weather = spawn(cut_now_and_then(in));
    std::array<client_outcome, 6> told;
    const std::size_t count = 1 + in.random.below(told.size());
    {
        task_group clients;
        for (std::size_t at = 0; at < count; ++at)
            clients.spawn(echo_client(in, static_cast<std::uint32_t>(at + 1), told[at]));
        in.expect((co_await clients.join()).has_value(), "clients have no errors of their own");
    }
    weather.request_stop();
    co_await weather;
    listener.close();
    co_await server;
}

// --- half-closes

task<> talk(world& in, tcp_stream& stream, flow& out, std::size_t size, flow& back) {
    const auto sent = co_await send_content(in, stream, out, size, manners::drawn_from(in.random));
    in.expect(!sent, "a relayed stream accepts all its bytes");
    in.expect(stream.shutdown_write().has_value(), "a live stream can be half-closed");
    const auto end = co_await receive_to_the_end(in, stream, back, manners::drawn_from(in.random));
    in.expect(!end, "a relay passes on the end");
}

task<> half_close(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    flow there{.key = 31};
    flow back{.key = 32};
    // One side sends everything and ends; only then the other one answers.
    auto first = spawn(talk(in, *made->client, there, in.random.size_up_to(40'000), back));
    const auto end =
        co_await receive_to_the_end(in, *made->server, there, manners::drawn_from(in.random));
    in.expect(!end, "the end follows the bytes");
    const std::size_t answer = in.random.size_up_to(40'000);
    const auto sent =
        co_await send_content(in, *made->server, back, answer, manners::drawn_from(in.random));
    in.expect(!sent, "a stream whose peer has ended can still be written to");
    if (in.random.chance(500)) {
        made->server->close();
    } else {
        in.expect(made->server->shutdown_write().has_value(), "a live stream can be half-closed");
    }
    co_await first;
    in.expect(there.received == there.sent && back.received == answer,
              "every byte arrives before the end");
}

// --- connects that succeed, fail, hang and are given up

task<> take_some(world& in, tcp_listener& listener) {
    for (;;) {
        auto taken = co_await listener.accept();
        if (!taken) co_return;
        const auto slept = co_await async_sleep(in.some_time(2ms));
        if (!slept) co_return;
    }
}

task<> one_connect(world& in, const bool& stopped) {
    const std::array<const char*, 4> hosts{"10.0.0.2:7000", "10.0.0.2:7001", "10.0.0.3:7000",
                                           "10.0.0.4:7000"};
    const std::size_t which = in.random.below(hosts.size());
    const endpoint to = or_throw(endpoint::parse(hosts[which]));
    const auto limit = in.some_time(in.random.chance(500) ? 2ms : 400s);
    const auto began = in.loop->now();
    const auto stream = co_await with_timeout(async_connect(to), limit);
    const auto took = in.loop->now() - began;
    if (stream) {
        in.expect(which == 0, "only a listener is connected to");
        in.expect(stream->remote_endpoint().has_value() || stream->native_handle() >= 0,
                  "a connected stream has a peer");
        co_return;
    }
    const std::error_code error = stream.error();
    if (error == errc::deadline_exceeded) {
        in.expect(took >= limit, "no deadline passes early");
    } else if (error == std::errc::operation_canceled) {
        in.expect(stopped, "no task is stopped without a request");
    } else if (which == 3) {
        in.expect(error == std::errc::timed_out, "a host that is cut off does not answer");
    } else if (which == 0) {
        in.expect(error == std::errc::timed_out || is_loss_of_the_connection(error),
                  "a full backlog accepts no connection");
    } else {
        in.expect(error == std::errc::connection_refused,
                  "a connect without a listener is refused");
    }
}

task<> connects(world& in) {
    listen_options options;
    options.backlog = static_cast<int>(in.random.below(3));
    tcp_listener listener = or_throw(tcp_listener::bind(server_address(), options));
    in.net.part("10.0.0.1", "10.0.0.4");
    auto taking = spawn(take_some(in, listener));
    {
        bool stopped = false;
        task_group group;
        for (std::size_t count = 1 + in.random.below(12); count > 0; --count)
            group.spawn(one_connect(in, stopped));
        if (in.random.chance(300)) {
            static_cast<void>(co_await async_sleep(in.some_time(2ms)));
            std::vector<task<result<tcp_stream>>> racers;
            for (int count = 0; count < 3; ++count)
                racers.push_back(async_connect(server_address()));
            const auto first = co_await when_any(std::move(racers));
            in.expect(first.values[first.index].has_value(), "the winner of a race has a value");
        }
        if (in.random.chance(300)) {
            stopped = true;
            group.request_stop();
        }
        static_cast<void>(co_await group.join());
    }
    taking.request_stop();
    co_await taking;
}

// --- closing in the middle

task<> closing(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    tcp_stream& ours = *made->client;
    tcp_stream& theirs = *made->server;
    flow there{.key = 41};
    flow back{.key = 42};
    constexpr std::size_t endless = std::size_t{1} << 30U;
    if (in.random.chance(200)) static_cast<void>(ours.set_linger(0s));
    auto sending = spawn(send_content(in, ours, there, endless, manners::drawn_from(in.random)));
    auto reading = spawn(receive_content(in, ours, back, endless, manners::drawn_from(in.random)));
    auto their_reading =
        spawn(receive_content(in, theirs, there, endless, manners::drawn_from(in.random)));
    // One draw in each statement: compilers evaluate arguments in any order.
    const std::size_t theirs_in_all = in.random.size_up_to(20'000);
    auto their_sending =
        spawn(send_content(in, theirs, back, theirs_in_all, manners::drawn_from(in.random)));
    static_cast<void>(co_await async_sleep(in.some_time(5ms)));
    ours.close();
    in.expect(ours.native_handle() == -1, "a closed socket has no handle");
    ours.close();
    in.expect((co_await ours.closed()).has_value(), "closed() returns");
    for (auto* each : {&sending, &reading}) {
        const auto error = co_await *each;
        in.expect(error == std::errc::operation_canceled || error == std::errc::bad_file_descriptor,
                  "operations in flight end with the close");
    }
    const auto refused = co_await ours.write_some(const_buffer{"x"});
    in.expect(!refused && refused.error() == std::errc::bad_file_descriptor,
              "no operation starts on a closed socket");
    in.expect(is_loss_of_the_connection(co_await their_reading), "the peer notices a close");
    const auto unsent = co_await their_sending;
    in.expect(!unsent || is_loss_of_the_connection(unsent), "writes to a closed peer end");
    in.expect(there.received <= there.sent + 30'001, "only bytes that were sent arrive");
}

constexpr std::array<scenario, 4> connection_table{{
    {"echo", echo},
    {"half_close", half_close},
    {"connects", connects},
    {"closing", closing},
}};

} // namespace

std::span<const scenario> connection_scenarios() noexcept {
    return connection_table;
}

} // namespace simplenet::v0::simulation
