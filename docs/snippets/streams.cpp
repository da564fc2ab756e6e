// The code of docs/usage/streams.md.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

//! [lines]
task<> serve(tcp_stream stream) {
    buffered_reader reader{std::move(stream)};
    while (const auto line = co_await with_timeout(reader.read_line(4096), 30s)) {
        std::string answer = "you said: " + std::string{*line} + '\n';
        if (!co_await async_write_all(reader.stream(), answer)) co_return;
    }
}
//! [lines]

//! [message]
/// Reads a message such as `PUT 5\r\nhello`, of at most a megabyte.
task<result<std::string>> read_message(buffered_reader<tcp_stream>& reader) {
    const auto header = co_await reader.read_line(64);
    if (!header) co_return fail(header);
    if (!header->starts_with("PUT ")) co_return fail(std::errc::bad_message);
    const std::string size{header->substr(4)}; // *header is valid only until the next call
    const unsigned long count = std::strtoul(size.c_str(), nullptr, 10);
    if (count > 1'000'000) co_return fail(errc::limit_exceeded);

    const auto body = co_await reader.read_exact(count);
    if (!body) co_return fail(body);
    co_return std::string(reinterpret_cast<const char*>(body->data()), body->size());
}
//! [message]

task<> why(buffered_reader<tcp_stream>& reader) {
    //! [ends]
    const auto line = co_await with_timeout(reader.read_line(4096), 30s);
    if (!line && line.error() == errc::end_of_stream) {
        if (!reader.peek().empty()) std::cerr << "the peer broke off in the middle of a line\n";
    } else if (!line && line.error() == errc::limit_exceeded) {
        std::cerr << "the line is too long\n";
    } else if (!line && line.error() == errc::deadline_exceeded) {
        std::cerr << "half a line may be here: call again, or give up\n";
    }
    //! [ends]
}

//! [frames]
task<> answer(tcp_stream stream) {
    frame_reader reader{stream}; // both borrow the stream
    frame_writer writer{stream};
    while (const auto body = co_await with_timeout(reader.read_frame(64 * 1024), 30s)) {
        if (!co_await writer.write_frame(*body)) co_return;
    }
}
//! [frames]

//! [read until]
task<result<std::string>> read_head(tcp_stream& stream, std::string& rest) {
    const auto length = co_await async_read_until(stream, rest, "\r\n\r\n", 16 * 1024);
    if (!length) co_return fail(length);
    std::string head = rest.substr(0, *length);
    rest.erase(0, *length); // the rest is the beginning of the body
    co_return head;
}
//! [read until]

//! [split]
task<> print(read_half<tcp_stream> from) {
    std::array<char, 4096> buffer;
    while (const auto count = co_await from.read_some(buffer))
        std::cout << std::string_view{buffer.data(), *count};
}

task<> send_all(write_half<tcp_stream> to, std::string text) {
    const auto sent = co_await async_write_all(to, text);
    if (!sent) std::cerr << "the peer is gone\n";
} // destroying `to` ends the stream for the peer; we keep reading

task<> converse(tcp_stream stream, std::string text) {
    auto [from, to] = split(std::move(stream));
    co_await when_all(print(std::move(from)), send_all(std::move(to), std::move(text)));
}
//! [split]

task<> half_close(tcp_stream& stream) {
    //! [shutdown]
    if (const auto told = co_await async_shutdown_write(stream); !told) {
        std::cerr << "cannot tell the peer: " << told.error().message() << '\n';
    }
    //! [shutdown]
}

//! [lingering]
task<> refuse(tcp_stream stream) {
    const auto told = co_await async_write_all(stream, "too large\n");
    if (told) std::ignore = co_await async_close_lingering(stream);
}
//! [lingering]

//! [readable]
/// Handles everything that has arrived as one batch; waits without holding memory.
task<result<>> serve_batches(tcp_stream& stream, std::string& requests) {
    while (true) {
        if (const auto there = co_await stream.readable(); !there) co_return there;
        for (int most = 16; most > 0; --most) { // then other tasks have their turn
            const auto bytes = stream.try_receive();
            if (!bytes && bytes.error() == std::errc::operation_would_block) break;
            if (!bytes) co_return fail(bytes);
            requests += bytes->text();
        }
        if (const auto answered = co_await async_write_all(stream, requests); !answered)
            co_return fail(answered);
        requests.clear();
    }
}
//! [readable]

//! [any]
task<> greet(any_stream stream) {
    if (!co_await async_write_all(stream, "220 ready\r\n")) co_return;
    buffered_reader reader{std::move(stream)};
    while (const auto line = co_await reader.read_line(512))
        std::cout << *line << '\n';
}

task<> greet_both(tcp_stream network, local_stream local) {
    any_stream first{std::move(network)};
    any_stream second{std::move(local)};
    co_await when_all(greet(std::move(first)), greet(std::move(second)));
}
//! [any]

//! [concept]
/// A stream that counts received bytes. Everything on this page can read from and write to any
/// class with these two functions.
class counting_stream {
public:
    explicit counting_stream(tcp_stream below)
        : below_{std::move(below)} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        const auto count = co_await below_.read_some(into);
        if (count) received_ += *count;
        co_return count;
    }
    auto write_some(const_buffer from) { return below_.write_some(from); }

    std::size_t received() const { return received_; }

private:
    tcp_stream below_;
    std::size_t received_ = 0;
};
static_assert(async_reader<counting_stream> && async_writer<counting_stream>);
//! [concept]
