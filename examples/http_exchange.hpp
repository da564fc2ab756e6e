#pragma once
// As much of HTTP/1.0 as http_get, https_get and parallel_fetch need: one request, and one answer,
// over any stream. Not a part of the library.

#include <simplenet/simplenet.hpp>

#include <algorithm>
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
/// others (RFC 6874, 1); and the port unless it is the usual one.
inline std::string http_host(const std::string& host, std::uint16_t port,
                             std::uint16_t usual = 80) {
    const bool v6 = host.find(':') != std::string::npos;
    const std::string name = v6 ? '[' + host.substr(0, host.find('%')) + ']' : host;
    return port == usual ? name : name + ':' + std::to_string(port);
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

inline constexpr std::size_t most_of_http = 64UL << 20U; // a server must not decide on our memory

/// The size of the whole answer of which `text` is the beginning, if that says it.
inline std::optional<std::size_t> http_size(const std::string& text) {
    const auto head = text.find("\r\n\r\n");
    if (head == std::string::npos) return std::nullopt;
    const auto length = content_length(text.substr(0, head));
    if (!length) return std::nullopt;
    return head + 4 + std::min(*length, most_of_http);
}

/// `host` is the value of `Host:`.
template <class Stream>
simplenet::task<simplenet::result<http_answer>> exchange_http(Stream stream, std::string host,
                                                              std::string path) {
    const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + host + "\r\n\r\n";
    if (auto sent = co_await async_write_all(stream, request); !sent)
        co_return simplenet::fail(sent);

    std::string text;
    std::optional<std::size_t> size; // unknown: the answer ends with the stream
    std::array<char, 16384> buffer;
    while (!size || text.size() < *size) {
        const auto count = co_await stream.read_some(buffer);
        if (!count && count.error() == simplenet::errc::end_of_stream) break;
        if (!count) co_return simplenet::fail(count);
        if (text.size() + *count > most_of_http)
            co_return simplenet::fail(simplenet::errc::limit_exceeded);
        text.append(buffer.data(), *count);
        if (!size) size = http_size(text);
    }

    // "HTTP/1.0 200 OK", header lines (only one matters here), an empty line, the body.
    http_answer answer;
    const auto head = text.find("\r\n\r\n");
    const auto code = text.find(' ') + 1;
    if (!text.starts_with("HTTP/1.") || head == std::string::npos || code > head ||
        std::from_chars(text.data() + code, text.data() + head, answer.status).ec != std::errc{}) {
        co_return simplenet::fail(std::errc::bad_message);
    }
    // The end of the stream looks the same whether the server finished or crashed.
    if (size && text.size() < *size) co_return simplenet::fail(simplenet::errc::end_of_stream);
    answer.body = text.substr(head + 4, size ? *size - head - 4 : std::string::npos);
    co_return answer;
}

} // namespace example
