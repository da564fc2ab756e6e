#pragma once
// The answer of servers that look at no request.

#include <cstddef>
#include <string>

namespace bench {

/// With as many fields as nginx sends with a file.
inline std::string answer_with(std::size_t body) {
    return "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Sun, 29 Nov 2026 12:00:00 GMT\r\n"
           "Content-Type: application/octet-stream\r\nContent-Length: " +
           std::to_string(body) +
           "\r\nLast-Modified: Sun, 29 Nov 2026 12:00:00 GMT\r\nConnection: keep-alive\r\n"
           "ETag: \"6746f3c0-264\"\r\nAccept-Ranges: bytes\r\n\r\n" +
           std::string(body, 'x');
}

} // namespace bench
