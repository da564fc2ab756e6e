// The scenarios: small programs in which everything happens that the seed can think of, and what
// must hold all the same.

#include "simulation/content.hpp"
#include "simulation/simulation.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

namespace {

using namespace std::chrono_literals;

endpoint server_address() {
    return or_throw(endpoint::parse("10.0.0.2:7000"));
}

/// The network is cut and healed now and then, until this is stopped.
task<> cut_now_and_then(world& in) {
    if (in.random.chance(600)) co_return;
    for (;;) {
        const auto fair = co_await async_sleep(in.some_time(20ms));
        if (!fair) break;
        in.net.part("10.0.0.1", "10.0.0.2");
        const auto foul = co_await async_sleep(in.some_time(50ms));
        if (!foul) break;
        in.net.heal();
    }
    in.net.heal();
}

struct pair_of_streams {
    std::optional<tcp_stream> client;
    std::optional<tcp_stream> server;
};

/// A connection of two hosts.
task<result<pair_of_streams>> connected(world& in) {
    auto listener = or_throw(tcp_listener::bind(server_address()));
    auto pending = spawn(async_connect(server_address()));
    auto accepted = co_await listener.accept();
    auto made = co_await pending;
    in.expect(accepted.has_value(), "a listener accepts");
    in.expect(made.has_value(), "a connect to a listener succeeds");
    if (!accepted || !made) co_return fail(std::errc::not_connected);
    co_return pair_of_streams{*std::move(made), *std::move(accepted)};
}

bool is_loss_of_the_connection(std::error_code error) {
    return error == std::errc::connection_reset || error == std::errc::broken_pipe ||
           error == std::errc::not_connected || error == errc::end_of_stream;
}

// --- a server and its clients
// --------------------------------------------------------------------------------------

task<> serve_echo(world& in, tcp_stream stream) {
    std::vector<std::byte> bytes(1 + in.random.size_up_to(5000));
    for (;;) {
        if (in.random.chance(300)) {
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
            in.expect(stream.error() == std::errc::operation_canceled, "accept goes on");
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
        in.expect(!not_sent && told.back.received == size, "an echo is whole");
        const auto closed = stream->shutdown_write(); // unless it was aborted meanwhile
        in.expect(closed || is_loss_of_the_connection(closed.error()),
                  "a live stream can be half-closed");
        std::array<std::byte, 10> rest{};
        const auto end = co_await stream->read_some(mutable_buffer{rest});
        in.expect(!end && is_loss_of_the_connection(end.error()), "after the echo comes the end");
    } else {
        in.expect(is_loss_of_the_connection(failed), "a stream ends for want of its connection");
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

// --- time limits, and what they leave
// --------------------------------------------------------------------------------------

template <class Stream>
task<> both_ways(world& in, Stream& one, Stream& other, std::size_t most) {
    std::array<flow, 2> ways{flow{.key = 11}, flow{.key = 12}};
    const std::size_t there = in.random.size_up_to(most);
    const std::size_t back = in.random.size_up_to(most);
    auto first = spawn(send_content(in, one, ways[0], there, manners::drawn_from(in.random)));
    auto second = spawn(receive_content(in, other, ways[0], there, manners::drawn_from(in.random)));
    auto third = spawn(send_content(in, other, ways[1], back, manners::drawn_from(in.random)));
    auto fourth = spawn(receive_content(in, one, ways[1], back, manners::drawn_from(in.random)));
    in.expect(!co_await first, "a stream takes what it is given");
    in.expect(!co_await second, "and gives it");
    in.expect(!co_await third, "a stream takes what it is given");
    in.expect(!co_await fourth, "and gives it");
    in.expect(ways[0].received == there && ways[1].received == back, "everything comes through");
    in.expect(ways[0].sent == there && ways[1].sent == back, "what moved is what was reported");
}

task<> limits(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    auto weather = spawn(cut_now_and_then(in));
    co_await both_ways(in, *made->client, *made->server, 60'000);
    weather.request_stop();
    co_await weather;
}

task<> local_limits(world& in) {
    auto ends = or_throw(local_stream::pair());
    co_await both_ways(in, ends.first, ends.second, 60'000);
}

// --- stops, and what they leave
// --------------------------------------------------------------------------------------

/// Moves content in a group that is stopped, again and again, until all of it has come.
template <class Stream>
task<> with_stops(world& in, Stream& one, Stream& other) {
    flow what{.key = 77};
    const std::size_t size = in.random.size_up_to(40'000);
    const manners sends = manners::drawn_from(in.random);
    const manners reads = manners::drawn_from(in.random);
    for (int round = 0; what.received < size; ++round) {
        task_group group;
        std::error_code sent;
        std::error_code received;
        auto sending = [&]() -> task<> {
            sent = co_await send_content(in, one, what, size, sends);
        };
        auto reading = [&]() -> task<> {
            received = co_await receive_content(in, other, what, size, reads);
        };
        group.spawn(sending);
        group.spawn(reading);
        if (round < 30) {
            static_cast<void>(co_await async_sleep(in.some_time(1ms)));
            group.request_stop();
        }
        static_cast<void>(co_await group.join());
        for (const std::error_code each : {sent, received})
            in.expect(!each || each == std::errc::operation_canceled, "a stop breaks nothing else");
        if (!in.failure.empty()) co_return;
    }
    in.expect(what.received == size && what.sent == size, "a stop loses nothing");
}

task<> stops(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    co_await with_stops(in, *made->client, *made->server);
}

task<> local_stops(world& in) {
    auto ends = or_throw(local_stream::pair());
    co_await with_stops(in, ends.first, ends.second);
}

// --- a queued writer and its slow reader
// --------------------------------------------------------------------------------------

task<> read_slowly(world& in, tcp_stream& from, flow& what, std::error_code& ended) {
    manners how = manners::drawn_from(in.random);
    how.pauses = 200;
    ended = co_await receive_to_the_end(in, from, what, how);
}

task<> writer(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    watermarks marks;
    marks.low = 1 + in.random.below(2000);
    marks.high = marks.low + in.random.below(5000);
    marks.limit = marks.high + in.random.below(10'000);
    flow what{.key = 5};
    std::error_code ended;
    auto reading = spawn(read_slowly(in, *made->server, what, ended));
    {
        queued_writer<tcp_stream> queue{*std::move(made->client), marks};
        const int rounds = static_cast<int>(in.random.size_up_to(60));
        for (int round = 0; round < rounds; ++round) {
            const std::size_t size = in.random.size_up_to(marks.limit);
            std::vector<std::byte> bytes(size);
            what.fill(bytes, what.sent);
            const std::size_t before = queue.queued_bytes();
            result<backpressure> taken = backpressure::normal;
            if (in.random.chance(500)) {
                taken = queue.enqueue(std::move(bytes));
            } else {
                taken = queue.enqueue(const_buffer{bytes});
            }
            if (taken) {
                what.sent += size;
                in.expect(queue.queued_bytes() <= marks.limit, "a queue keeps to its limit");
                in.expect(queue.high_watermark_active() == (*taken == backpressure::high_watermark),
                          "enqueue says when it is enough");
            } else {
                in.expect(taken.error() == errc::queue_full, "a queue refuses for want of room");
                in.expect(queue.queued_bytes() == before, "a full queue takes nothing");
            }
            if (in.random.chance(400)) {
                const auto room = co_await with_timeout(queue.writable(), in.some_time(5ms));
                in.expect(room || room.error() == errc::deadline_exceeded, "writable() waits");
                in.expect(!room || queue.queued_bytes() < marks.low ||
                              !queue.high_watermark_active(),
                          "writable() waits until there is room");
            } else if (in.random.chance(300)) {
                const auto flushed = co_await with_timeout(queue.flush(), in.some_time(5ms));
                in.expect(flushed || flushed.error() == errc::deadline_exceeded, "flush() waits");
                in.expect(!flushed || queue.queued_bytes() == 0, "flush() waits for everything");
            }
        }
        in.expect((co_await queue.graceful_shutdown()).has_value(), "a writer ends gracefully");
        in.expect(queue.queued_bytes() == 0, "nothing is left then");
    }
    co_await reading;
    in.expect(!ended && what.received == what.sent, "what was enqueued comes through, in order");
}

// --- a relay between two streams
// --------------------------------------------------------------------------------------

struct relay_counts {
    std::size_t there = 0;
    std::size_t back = 0;
};

task<> talk(world& in, tcp_stream& stream, flow& out, std::size_t size, flow& back) {
    const auto sent = co_await send_content(in, stream, out, size, manners::drawn_from(in.random));
    in.expect(!sent, "a relayed stream takes what it is given");
    in.expect(stream.shutdown_write().has_value(), "a live stream can be half-closed");
    const auto end = co_await receive_to_the_end(in, stream, back, manners::drawn_from(in.random));
    in.expect(!end, "a relay passes the end on");
}

task<> listen_first(world& in, tcp_stream& stream, flow& out, std::size_t size, flow& back) {
    auto receiving = spawn(receive_to_the_end(in, stream, back, manners::drawn_from(in.random)));
    const auto sent = co_await send_content(in, stream, out, size, manners::drawn_from(in.random));
    in.expect(!sent, "a relayed stream takes what it is given");
    in.expect(stream.shutdown_write().has_value(), "a live stream can be half-closed");
    in.expect(!co_await receiving, "a relay passes the end on");
}

task<> relay(world& in) {
    auto left = co_await connected(in);
    auto right = co_await connected(in);
    if (!left || !right) co_return;
    flow there{.key = 21};
    flow back{.key = 22};
    const std::size_t size_there = in.random.size_up_to(100'000);
    const std::size_t size_back = in.random.size_up_to(100'000);
    auto one = spawn(listen_first(in, *left->client, there, size_there, back));
    auto other = spawn(listen_first(in, *right->server, back, size_back, there));
    auto weather = spawn(cut_now_and_then(in));
    const auto copied = co_await async_copy_bidirectional(*left->server, *right->client);
    weather.request_stop();
    co_await weather;
    co_await one;
    co_await other;
    in.expect(copied.has_value(), "a relay between streams that end has no error");
    if (copied) {
        in.expect(copied->a_to_b == size_there && copied->b_to_a == size_back,
                  "a relay counts what it moves");
    }
    in.expect(there.received == size_there && back.received == size_back,
              "a relay passes everything on");
}

// --- half-closes
// --------------------------------------------------------------------------------------

task<> half_close(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    flow there{.key = 31};
    flow back{.key = 32};
    // One says everything and ends; the other one answers only then.
    auto first = spawn(talk(in, *made->client, there, in.random.size_up_to(40'000), back));
    const auto end =
        co_await receive_to_the_end(in, *made->server, there, manners::drawn_from(in.random));
    in.expect(!end, "the end comes after the bytes");
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
              "everything comes before the end");
}

// --- connects that succeed, fail, hang and are given up
// --------------------------------------------------------------------------------------

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
        in.expect(stopped, "nobody is stopped who was not asked to stop");
    } else if (which == 3) {
        in.expect(error == std::errc::timed_out, "a host that is cut off does not answer");
    } else if (which == 0) {
        in.expect(error == std::errc::timed_out || is_loss_of_the_connection(error),
                  "a full backlog lets nobody in");
    } else {
        in.expect(error == std::errc::connection_refused, "where nobody listens it is refused");
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
// --------------------------------------------------------------------------------------

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
    // One draw a statement: compilers evaluate arguments in any order.
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
                  "what is in flight ends with the close");
    }
    const auto refused = co_await ours.write_some(const_buffer{"x"});
    in.expect(!refused && refused.error() == std::errc::bad_file_descriptor,
              "nothing begins on a closed socket");
    in.expect(is_loss_of_the_connection(co_await their_reading), "the peer hears of a close");
    const auto unsent = co_await their_sending;
    in.expect(!unsent || is_loss_of_the_connection(unsent), "and its writes end");
    in.expect(there.received <= there.sent + 30'001, "nothing comes that was not sent");
}

// --- datagrams
// --------------------------------------------------------------------------------------

task<> udp_receiver(world& in, udp_socket& socket, std::vector<std::uint8_t>& seen) {
    std::vector<std::byte> bytes(2000);
    for (;;) {
        const auto got =
            co_await with_timeout(socket.receive_from(mutable_buffer{bytes}), in.some_time(3ms));
        if (!got) {
            if (got.error() == errc::deadline_exceeded) {
                expect_nothing_there(in, socket, got.error());
                continue;
            }
            co_return;
        }
        in.expect(got->size >= 4 && !got->truncated, "a datagram is whole");
        std::uint32_t number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        const bool known = number < seen.size();
        in.expect(known, "a datagram is one that was sent");
        if (!known) co_return;
        ++seen[number];
        in.expect(seen[number] <= 2, "the network doubles, the library does not");
        for (std::size_t at = 4; at < got->size; ++at) {
            if (bytes[at] != flow::at(number, at)) {
                in.expect(false, "a datagram is what was sent");
                co_return;
            }
        }
    }
}

task<> datagrams(world& in) {
    auto receiver = or_throw(udp_socket::bind(server_address()));
    auto sender = or_throw(udp_socket::bind(or_throw(endpoint::parse("10.0.0.1:0"))));
    std::vector<std::uint8_t> seen(in.random.size_up_to(200));
    auto receiving = spawn(udp_receiver(in, receiver, seen));
    for (std::uint32_t number = 0; number < seen.size(); ++number) {
        std::vector<std::byte> bytes(4 + in.random.below(1500));
        for (std::size_t at = 0; at < bytes.size(); ++at)
            bytes[at] = flow::at(number, at);
        std::memcpy(bytes.data(), &number, sizeof number);
        const auto sent = co_await sender.send_to(const_buffer{bytes}, server_address());
        in.expect(sent.has_value(), "a datagram can be sent");
        if (in.random.chance(200)) static_cast<void>(co_await async_sleep(in.some_time(1ms)));
    }
    static_cast<void>(co_await async_sleep(200ms));
    receiving.request_stop();
    co_await receiving;
    if (in.net.like().lost == 0) {
        for (const auto each : seen)
            in.expect(each != 0, "what the network does not lose arrives");
    }
}

task<> local_sender(world& in, local_datagram& from, std::uint32_t count) {
    for (std::uint32_t number = 0; number < count; ++number) {
        std::array<std::byte, 8> bytes{};
        std::memcpy(bytes.data(), &number, sizeof number);
        const auto sent = co_await with_timeout(from.send(const_buffer{bytes}), in.some_time(3ms));
        if (sent) continue;
        in.expect(sent.error() == errc::deadline_exceeded,
                  "a local datagram finds room in the end");
        --number; // once more
    }
}

task<> local_datagrams(world& in) {
    auto ends = or_throw(local_datagram::pair());
    const auto count = static_cast<std::uint32_t>(in.random.size_up_to(200));
    auto sending = spawn(local_sender(in, ends.first, count));
    std::array<std::byte, 100> bytes{};
    for (std::uint32_t expected = 0; expected < count;) {
        if (in.random.chance(100)) static_cast<void>(co_await async_sleep(in.some_time(2ms)));
        const auto got =
            co_await with_timeout(ends.second.receive(mutable_buffer{bytes}), in.some_time(5ms));
        if (!got) {
            in.expect(got.error() == errc::deadline_exceeded, "a local datagram comes");
            expect_nothing_there(in, ends.second, got.error());
            continue;
        }
        std::uint32_t number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        in.expect(got->size == 8 && number == expected, "local datagrams come all, and in order");
        if (!in.failure.empty()) break;
        ++expected;
    }
    sending.request_stop();
    co_await sending;
}

// --- the end of a loop
// --------------------------------------------------------------------------------------

// Both in one parameter: compilers destroy the parameters of a coroutine in different orders.
task<> talk_for_ever(world& in, pair_of_streams between) {
    tcp_stream& one = *between.client;
    tcp_stream& other = *between.server;
    flow there{.key = 51};
    flow back{.key = 52};
    constexpr std::size_t endless = std::size_t{1} << 30U;
    task_group group;
    auto first = [&]() -> task<> {
        static_cast<void>(co_await send_content(in, one, there, endless, manners{}));
    };
    auto second = [&]() -> task<> {
        static_cast<void>(co_await receive_content(in, other, there, endless, manners{}));
    };
    auto third = [&]() -> task<> {
        static_cast<void>(co_await receive_content(in, one, back, endless, manners{}));
    };
    group.spawn(first);
    group.spawn(second);
    group.spawn(third);
    static_cast<void>(co_await group.join());
}

task<> sleep_on(world& in) {
    for (;;) {
        const auto slept = co_await async_sleep(in.some_time(1ms));
        if (!slept) co_return;
    }
}

task<> teardown(world& in) {
    const std::size_t pairs = 1 + in.random.below(3);
    for (std::size_t count = 0; count < pairs; ++count) {
        auto made = co_await connected(in);
        if (!made) co_return;
        spawn(talk_for_ever(in, *std::move(made))).detach();
    }
    spawn(sleep_on(in)).detach();
    spawn(async_connect(or_throw(endpoint::parse("10.0.0.9:1")))).detach();
    static_cast<void>(co_await async_sleep(in.some_time(5ms)));
    in.loop->stop();
}

// --- timers
// --------------------------------------------------------------------------------------

task<> sleeper(world& in, std::chrono::nanoseconds time) {
    const auto began = in.loop->now();
    const auto slept = co_await async_sleep(time);
    const auto took = in.loop->now() - began;
    in.note(slept ? "slept" : "stopped", took.count());
    in.expect(took >= time || !slept, "no timer fires early");
    // A tick, and what the turns around it take.
    in.expect(!slept || took <= time + 17us + 6 * in.net.like().slowness, "nor late");
}

task<> ticker(world& in) {
    interval every{1us + in.some_time(1ms)};
    for (int tick = 0; tick < 20; ++tick) {
        const auto ticked = co_await every.next();
        if (!ticked) co_return;
    }
}

task<> timers(world& in) {
    task_group group;
    for (std::size_t count = in.random.size_up_to(100); count > 0; --count) {
        const auto longest = std::array{10us, 1000us, 1'000'000us, 3'000'000'000us};
        group.spawn(sleeper(in, in.some_time(longest[in.random.below(longest.size())])));
        if (in.random.chance(100)) group.spawn(ticker(in));
    }
    if (in.random.chance(300)) {
        static_cast<void>(co_await async_sleep(in.some_time(10ms)));
        group.request_stop();
    }
    static_cast<void>(co_await group.join());
}

// --- lines
// --------------------------------------------------------------------------------------

task<> send_text(world& in, tcp_stream& to, const std::string& text) {
    const std::string_view whole{text};
    for (std::size_t at = 0; at < whole.size();) {
        const std::size_t size = std::min(whole.size() - at, in.random.size_up_to(200));
        const auto sent = co_await async_write_all(to, whole.substr(at, size));
        in.expect(sent.has_value(), "lines are sent");
        if (!sent) co_return;
        at += size;
    }
    in.expect(to.shutdown_write().has_value(), "a live stream can be half-closed");
}

task<> lines(world& in) {
    auto made = co_await connected(in);
    if (!made) co_return;
    std::vector<std::string> sent;
    std::string text;
    for (std::size_t count = in.random.size_up_to(60); count > 0; --count) {
        const std::size_t length = in.random.below(80);
        std::string line(length, static_cast<char>('a' + in.random.below(26)));
        text += line;
        text += in.random.chance(300) ? "\r\n" : "\n";
        sent.push_back(std::move(line));
    }
    auto sending = spawn(send_text(in, *made->client, text));
    buffered_reader<tcp_stream&> reader{*made->server};
    std::size_t next = 0;
    for (;;) {
        const auto line = co_await with_timeout(reader.read_line(100), in.some_time(2ms));
        if (!line) {
            if (line.error() == errc::deadline_exceeded) continue;
            in.expect(line.error() == errc::end_of_stream, "lines end with the stream");
            break;
        }
        in.expect(next < sent.size() && *line == sent[next], "lines are what was sent");
        if (!in.failure.empty()) break;
        ++next;
    }
    in.expect(next == sent.size() || !in.failure.empty(), "all lines come");
    sending.request_stop();
    co_await sending;
}

constexpr std::array<scenario, 15> all{{
    {"echo", echo},
    {"limits", limits},
    {"local_limits", local_limits},
    {"stops", stops},
    {"local_stops", local_stops},
    {"writer", writer},
    {"relay", relay},
    {"half_close", half_close},
    {"connects", connects},
    {"closing", closing},
    {"datagrams", datagrams},
    {"local_datagrams", local_datagrams},
    {"teardown", teardown},
    {"timers", timers},
    {"lines", lines},
}};

} // namespace

std::span<const scenario> scenarios() noexcept {
    return all;
}

} // namespace simplenet::v0::simulation
