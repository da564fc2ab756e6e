#pragma once
// The command line that every server of the suite understands, so that a scenario uses the same
// words for our own servers, Boost.Asio's, libuv's, libevent's and the bare ones.
//
//   --port N       0 takes a free one; either way the first line of output is the port
//   --backend NAME epoll or io_uring; a server with only one accepts only that
//   --mode NAME    echo, or another mode of the server
//   --read-mode    read_some or receive: affects only our servers
//   --buffer BYTES of each connection   --block BYTES that `source` writes at a time
//   --copies N     how often `queue` sends back each message
//   --stay         serve for ever: servers that always do accept it

#include "arguments.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace bench {

struct server_options {
    std::uint16_t port = 0;
    std::size_t buffer = 4096;
    std::size_t block = 65536;
    std::size_t copies = 16;
    std::string_view mode = "echo";
    std::string_view backend;

    /// Ends the program with a message if the server does not support an option.
    static server_options read(arguments& given, std::string_view backend,
                               std::initializer_list<std::string_view> modes) {
        server_options found;
        found.port = static_cast<std::uint16_t>(given.number("port", 0));
        found.buffer = given.number("buffer", 4096);
        found.block = given.number("block", 65536);
        found.copies = given.number("copies", 16);
        found.mode = given.text("mode", "echo");
        found.backend = given.text("backend", backend);
        static_cast<void>(given.text("read-mode", "read_some"));
        static_cast<void>(given.flag("stay"));
        if (found.backend != backend) unknown("backend", found.backend);
        for (const std::string_view each : modes) {
            if (each == found.mode) return found;
        }
        unknown("mode", found.mode);
    }

    [[noreturn]] static void unknown(const char* what, std::string_view which) {
        std::fprintf(stderr, "this server has no %s %.*s\n", what, static_cast<int>(which.size()),
                     which.data());
        std::exit(2);
    }
};

inline void print_port(int port) {
    std::printf("%d\n", port);
    std::fflush(stdout);
}

/// A listening socket on loopback whose port has been printed; ends the program if that fails.
inline int listen_on_loopback(std::uint16_t port, int flags) {
    const auto fail = [](const char* what) {
        std::perror(what);
        std::exit(1);
    };
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) fail("socket");
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), size) != 0) fail("bind");
    if (::listen(fd, 4096) != 0) fail("listen");
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) fail("getsockname");
    print_port(ntohs(at.sin_port));
    return fd;
}

inline void set_no_delay(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

} // namespace bench
