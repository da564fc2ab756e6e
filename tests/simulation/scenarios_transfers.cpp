// Bytes that pass through writers, relays and readers of lines, with time limits and stops.

#include "simulation/scenario_parts.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

namespace {

using namespace std::chrono_literals;

// --- time limits, and the state after them

template <class Stream>
task<> both_ways(world& in, Stream& one, Stream& other, std::size_t most) {
    std::array<flow, 2> ways{flow{.key = 11}, flow{.key = 12}};
    const std::size_t there = in.random.size_up_to(most);
    const std::size_t back = in.random.size_up_to(most);
    auto first = spawn(send_content(in, one, ways[0], there, manners::drawn_from(in.random)));
    auto second = spawn(receive_content(in, other, ways[0], there, manners::drawn_from(in.random)));
    auto third = spawn(send_content(in, other, ways[1], back, manners::drawn_from(in.random)));
    auto fourth = spawn(receive_content(in, one, ways[1], back, manners::drawn_from(in.random)));
    in.expect(!co_await first, "a stream accepts all its bytes");
    in.expect(!co_await second, "a stream delivers all its bytes");
    in.expect(!co_await third, "a stream accepts all its bytes");
    in.expect(!co_await fourth, "a stream delivers all its bytes");
    in.expect(ways[0].received == there && ways[1].received == back, "every byte arrives");
    in.expect(ways[0].sent == there && ways[1].sent == back, "the bytes moved are those reported");
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

// --- stops, and the state after them

/// Moves content in a group that is stopped repeatedly, until all of it has arrived.
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
            in.expect(!each || each == std::errc::operation_canceled,
                      "a stop affects nothing else");
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
                in.expect(queue.queued_bytes() <= marks.limit, "a queue does not exceed its limit");
                in.expect(queue.high_watermark_active() == (*taken == backpressure::high_watermark),
                          "enqueue() reports back-pressure");
            } else {
                in.expect(taken.error() == errc::queue_full,
                          "a queue refuses only for lack of room");
                in.expect(queue.queued_bytes() == before, "a full queue accepts nothing");
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
        in.expect(queue.queued_bytes() == 0, "nothing is left afterwards");
    }
    co_await reading;
    in.expect(!ended && what.received == what.sent, "enqueued bytes arrive in order");
}

// --- a relay between two streams

struct relay_counts {
    std::size_t there = 0;
    std::size_t back = 0;
};

task<> listen_first(world& in, tcp_stream& stream, flow& out, std::size_t size, flow& back) {
    auto receiving = spawn(receive_to_the_end(in, stream, back, manners::drawn_from(in.random)));
    const auto sent = co_await send_content(in, stream, out, size, manners::drawn_from(in.random));
    in.expect(!sent, "a relayed stream accepts all its bytes");
    in.expect(stream.shutdown_write().has_value(), "a live stream can be half-closed");
    in.expect(!co_await receiving, "a relay passes on the end");
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
    in.expect(copied.has_value(), "a relay between streams that end reports no error");
    if (copied) {
        in.expect(copied->a_to_b == size_there && copied->b_to_a == size_back,
                  "a relay counts the bytes it moves");
    }
    in.expect(there.received == size_there && back.received == size_back,
              "a relay passes on every byte");
}

// --- lines

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
    in.expect(next == sent.size() || !in.failure.empty(), "all lines arrive");
    sending.request_stop();
    co_await sending;
}

constexpr std::array<scenario, 7> transfer_table{{
    {"limits", limits},
    {"local_limits", local_limits},
    {"stops", stops},
    {"local_stops", local_stops},
    {"writer", writer},
    {"relay", relay},
    {"lines", lines},
}};

} // namespace

std::span<const scenario> transfer_scenarios() noexcept {
    return transfer_table;
}

} // namespace simplenet::v0::simulation
