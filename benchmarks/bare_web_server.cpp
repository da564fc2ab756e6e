// The system calls of a web server alone, on edge-triggered epoll: see bare_web.hpp.

#include "bare_web.hpp"
#include "edge_triggered.hpp"

#include <array>
#include <cerrno>
#include <cstddef>

#include <sys/socket.h>

namespace {

struct connection {
    int fd;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    bench::bare_web web{given};
    std::array<char, bench::bare_web::buffer> bytes;
    const int listener = bench::listen_on_loopback(web.port(), SOCK_NONBLOCK);
    const bench::edges<connection> edges;
    edges.serve(
        listener, [](int fd) { return new connection{fd}; },
        [&](const connection& of) {
            const ssize_t got = ::recv(of.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) return true; // the edge was one for writing
            if (got <= 0) {
                web.ended(of.fd);
                return false;
            }
            web.received(of.fd, {bytes.data(), static_cast<std::size_t>(got)},
                         [&](int fd) { edges.add(*new connection{fd}); });
            return true;
        });
}
