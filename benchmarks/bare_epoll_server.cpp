// Echo with system calls alone: edge-triggered epoll, and a short read counts as "empty". The
// baseline for a library: only the cost of the kernel remains.

#include "edge_triggered.hpp"
#include "server_options.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>

#include <sys/socket.h>

namespace {

struct connection {
    int fd;
    std::size_t unsent_from = 0;
    std::size_t unsent_to = 0; // offset in the buffer; equal: nothing waits to be sent
    std::unique_ptr<char[]> buffer;
};

/// False: the connection is over.
bool serve(connection& of, std::size_t size) {
    while (true) {
        while (of.unsent_from != of.unsent_to) {
            const ssize_t sent = ::send(of.fd, of.buffer.get() + of.unsent_from,
                                        of.unsent_to - of.unsent_from, MSG_NOSIGNAL);
            if (sent < 0) return errno == EAGAIN;
            of.unsent_from += static_cast<std::size_t>(sent);
        }
        const ssize_t got = ::recv(of.fd, of.buffer.get(), size, 0);
        if (got < 0) return errno == EAGAIN;
        if (got == 0) return false;
        of.unsent_from = 0;
        of.unsent_to = static_cast<std::size_t>(got);
        if (of.unsent_to == size) continue;
        // A short read: the socket is empty, and the next bytes, or the end, cause an edge.
        const ssize_t sent = ::send(of.fd, of.buffer.get(), of.unsent_to, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN) return true;
            return false;
        }
        of.unsent_from = static_cast<std::size_t>(sent);
        if (of.unsent_from == of.unsent_to) return true;
    }
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto how = bench::server_options::read(given, "epoll", {"echo"});
    given.done();
    bench::serve_at_edges(
        bench::listen_on_loopback(how.port, SOCK_NONBLOCK),
        [&](int fd) {
            return new connection{.fd = fd, .buffer = std::make_unique<char[]>(how.buffer)};
        },
        [&](connection& of) { return serve(of, how.buffer); });
}
