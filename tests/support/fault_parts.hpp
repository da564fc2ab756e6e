#pragma once
// Common parts of the scenarios of fail_everywhere. Each part ends with the first error and then
// releases its streams, so that the other side notices.

#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace simplenet::v0::testing {

/// The arguments as text: the result of a scenario.
template <class... Answers>
std::string told(const Answers&... answers) {
    std::string text;
    ((text += std::to_string(answers) + ' '), ...);
    return text;
}

/// For an outcome that was to be another error: its error, or that it has none. A fault can do
/// both.
template <simplenet::detail::failable Expected>
std::unexpected<std::error_code> failed_otherwise(const Expected& outcome) {
    const std::error_code error = error_of(outcome);
    return fail(error ? error : std::make_error_code(std::errc::protocol_error));
}

struct file_closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using owned_file = std::unique_ptr<std::FILE, file_closer>;

/// An anonymous file with `content`.
inline owned_file temporary_file(std::string_view content) {
    owned_file made{std::tmpfile()};
    std::fwrite(content.data(), 1, content.size(), made.get());
    std::fflush(made.get());
    return made;
}

struct connection {
    tcp_stream client;
    tcp_stream server;
};

/// Both ends of a connection, made with all the calls involved.
inline task<result<connection>> make_connection() {
    auto listener = co_await or_return(tcp_listener::bind(own_endpoint()));
    const auto at = co_await or_return(listener.local_endpoint());
    auto connecting = async_connect(at);
    auto client = co_await or_return(co_await std::move(connecting));
    auto server = co_await or_return(co_await listener.accept());
    co_return connection{.client = std::move(client), .server = std::move(server)};
}

/// The end of the stream is not an error.
inline result<> ended(std::error_code error) {
    if (error == errc::end_of_stream) return {};
    return fail(error);
}

template <class Stream>
task<result<>> echo_by_read_some(Stream peer) {
    std::array<char, 512> buffer{};
    for (;;) {
        const auto bytes = std::as_writable_bytes(std::span{buffer});
        const auto count = co_await peer.read_some(bytes);
        if (!count) {
            peer.close(); // the frame lives until the result is taken
            co_return ended(count.error());
        }
        const auto sent = co_await async_write_all(peer, const_buffer{buffer.data(), *count});
        if (!sent) co_return fail(sent);
    }
}

/// Echoes to the first client.
template <class Listener>
task<result<>> serve_one(Listener& listener) {
    auto peer = co_await listener.accept();
    if (!peer) co_return fail(peer);
    co_return co_await echo_by_read_some(*std::move(peer));
}

template <class Stream>
task<result<>> echo_by_receive(Stream peer) {
    for (;;) {
        const auto lease = co_await peer.receive();
        if (!lease) {
            peer.close();
            co_return ended(lease.error());
        }
        const auto sent = co_await async_write_all(peer, *lease);
        if (!sent) co_return fail(sent);
    }
}

/// Reads to the end of the stream.
template <class Stream>
task<result<>> read_all(Stream& stream, std::string& got) {
    std::array<char, 700> buffer{};
    for (;;) {
        const auto bytes = std::as_writable_bytes(std::span{buffer});
        const auto count = co_await stream.read_some(bytes);
        if (!count) co_return ended(count.error());
        got.append(buffer.data(), *count);
    }
}

/// Sends `text` word by word, each after the reply to the previous one, and records the replies.
template <class Stream>
task<result<>> converse(Stream stream, std::string_view text, std::string& got) {
    while (!text.empty()) {
        const std::size_t length = std::min(text.find(' '), text.size() - 1) + 1;
        std::array<char, 64> answer{};
        const auto sent = co_await async_write_all(stream, text.substr(0, length));
        if (!sent) co_return fail(sent);
        const auto bytes = std::as_writable_bytes(std::span{answer}).first(length);
        const auto count = co_await async_read_exact(stream, bytes);
        if (!count) co_return fail(count);
        got.append(answer.data(), length);
        text.remove_prefix(length);
    }
    const result<> told = co_await async_shutdown_write(stream);
    if (!told) co_return fail(told);
    co_return co_await read_all(stream, got);
}

} // namespace simplenet::v0::testing
