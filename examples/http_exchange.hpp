#pragma once
// As much of HTTP/1.0 as http_get and parallel_fetch need: one request, and one answer that ends
// with the stream. Not a part of the library.

#include <simplenet/simplenet.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace example {

struct http_answer {
    // Not an aggregate: GCC 12 destroys those twice in a co_await expression.
    http_answer() = default;
    int status = 0; // 200 means success
    std::string body;
};

/// The value of `Host:`: an IPv6 address in brackets and without its zone, which has no meaning for
/// others (RFC 6874, 1); and the port unless it is the default.
inline std::string http_host(const std::string& host, std::uint16_t port) {
    const bool v6 = host.find(':') != std::string::npos;
    const std::string name = v6 ? '[' + host.substr(0, host.find('%')) + ']' : host;
    return port == 80 ? name : name + ':' + std::to_string(port);
}

/// The length of the body, if the response header states it.
inline std::optional<std::size_t> content_length(std::string head) {
    for (char& each : head)
        each = each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
    constexpr std::string_view name = "\r\ncontent-length:";
    auto at = head.find(name);
    if (at == std::string::npos) return std::nullopt;
    at = head.find_first_not_of(" \t", at + name.size());
    std::size_t length = 0;
    if (at == std::string::npos ||
        std::from_chars(head.data() + at, head.data() + head.size(), length).ec != std::errc{}) {
        return std::nullopt;
    }
    return length;
}

/// Whether `path` can be put into a request without changing the request's meaning.
inline bool is_http_path(std::string_view path) {
    return path.starts_with('/') && path.find_first_of(" \t\r\n") == std::string_view::npos;
}

inline simplenet::task<simplenet::result<http_answer>> exchange_http(simplenet::tcp_stream stream,
                                                                     std::string host,
                                                                     std::uint16_t port,
                                                                     std::string path) {
    constexpr std::size_t most = 64UL << 20U; // the server must not decide how much memory we use
    const std::string request =
        "GET " + path + " HTTP/1.0\r\nHost: " + http_host(host, port) + "\r\n\r\n";
    if (auto sent = co_await async_write_all(stream, request); !sent)
        co_return simplenet::fail(sent);

    std::string text;
    std::array<char, 16384> buffer;
    for (;;) {
        const auto count = co_await stream.read_some(buffer);
        if (!count && count.error() == simplenet::errc::end_of_stream) break;
        if (!count) co_return simplenet::fail(count);
        if (text.size() + *count > most) co_return simplenet::fail(simplenet::errc::limit_exceeded);
        text.append(buffer.data(), *count);
    }

    // "HTTP/1.0 200 OK", header lines (only one matters here), an empty line, the body.
    http_answer answer;
    const auto head = text.find("\r\n\r\n");
    const auto code = text.find(' ') + 1;
    if (!text.starts_with("HTTP/1.") || head == std::string::npos || code > head ||
        std::from_chars(text.data() + code, text.data() + head, answer.status).ec != std::errc{}) {
        co_return simplenet::fail(std::errc::bad_message);
    }
    answer.body = text.substr(head + 4);
    // The end of the stream looks the same whether the server finished or crashed.
    const auto length = content_length(text.substr(0, head));
    if (length && answer.body.size() < *length)
        co_return simplenet::fail(simplenet::errc::end_of_stream);
    co_return answer;
}

} // namespace example
