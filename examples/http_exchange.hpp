#pragma once
// As much HTTP/1.0 as http_get and parallel_fetch need: one request, one answer that ends with the
// stream. Not a part of the library.

#include <simplenet/simplenet.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace example {

struct http_answer {
    http_answer() = default; // no aggregate: GCC 12 destroys those twice in a co_await expression
    int status = 0;          // 200 is good
    std::string body;
};

/// Whether `path` can stand in a request without changing what is asked.
inline bool is_http_path(std::string_view path) {
    return path.starts_with('/') && path.find_first_of(" \t\r\n") == std::string_view::npos;
}

inline simplenet::task<simplenet::result<http_answer>>
exchange_http(simplenet::tcp_stream stream, std::string host, std::string path) {
    constexpr std::size_t most = 64UL << 20U; // a server does not decide how much memory we use
    const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + host + "\r\n\r\n";
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

    // "HTTP/1.0 200 OK", lines of which nothing is needed here, an empty one, the body.
    http_answer answer;
    const auto head = text.find("\r\n\r\n");
    const auto code = text.find(' ') + 1;
    if (!text.starts_with("HTTP/1.") || head == std::string::npos || code > head ||
        std::from_chars(text.data() + code, text.data() + head, answer.status).ec != std::errc{}) {
        co_return simplenet::fail(std::errc::bad_message);
    }
    answer.body = text.substr(head + 4);
    co_return answer;
}

} // namespace example
