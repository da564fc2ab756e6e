// Echo, or a source of bytes, with libevent: an event for each socket, recv(2) and send(2) in its
// callback, which is its fast way. A bufferevent reads at most 4096 bytes at a time, and asks the
// kernel before each read how many there are.

#include "server_options.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>

#include <event2/event.h>
#include <event2/listener.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

std::size_t buffer_size = 4096;
bool source = false;

struct connection {
    event* readable = nullptr;
    event* writable = nullptr;
    std::unique_ptr<char[]> buffer = std::make_unique<char[]>(buffer_size);
    std::size_t sent = 0;
    std::size_t filled = 0;
};

void end(evutil_socket_t fd, connection* which) {
    event_free(which->readable);
    event_free(which->writable);
    delete which;
    ::close(fd);
}

/// Sends the rest; reads again only when it is sent: at most one message in flight, as in the other
/// servers. False if the connection is broken.
bool reply(evutil_socket_t fd, connection& which) {
    const ssize_t count = ::send(fd, which.buffer.get() + which.sent, which.filled - which.sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) return false;
    if (count > 0) which.sent += static_cast<std::size_t>(count);
    return true;
}

void have_room(evutil_socket_t fd, short, void* of) {
    auto* const which = static_cast<connection*>(of);
    if (!reply(fd, *which)) return end(fd, which);
    event_add(which->sent == which->filled ? which->readable : which->writable, nullptr);
}

void have_bytes(evutil_socket_t fd, short, void* of) {
    auto* const which = static_cast<connection*>(of);
    const ssize_t count = ::recv(fd, which->buffer.get(), buffer_size, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return end(fd, which);
    which->sent = 0;
    which->filled = static_cast<std::size_t>(count);
    if (!reply(fd, *which)) return end(fd, which);
    if (which->sent == which->filled) return;
    event_del(which->readable);
    event_add(which->writable, nullptr);
}

/// Writes blocks as long as the peer reads.
void write_blocks(evutil_socket_t fd, short, void* of) {
    auto* const which = static_cast<connection*>(of);
    if (which->sent == which->filled) which->sent = 0;
    if (!reply(fd, *which)) end(fd, which);
}

void accept_one(evconnlistener* listener, evutil_socket_t fd, sockaddr*, int, void*) {
    bench::set_no_delay(fd);
    auto* const which = new connection;
    event_base* const base = evconnlistener_get_base(listener);
    which->readable = event_new(base, fd, EV_READ | EV_PERSIST, have_bytes, which);
    which->filled = source ? buffer_size : 0;
    which->writable = source ? event_new(base, fd, EV_WRITE | EV_PERSIST, write_blocks, which)
                             : event_new(base, fd, EV_WRITE, have_room, which);
    event_add(source ? which->writable : which->readable, nullptr);
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto how = bench::server_options::read(given, "epoll", {"echo", "source"});
    given.done();
    source = how.mode == "source";
    buffer_size = source ? how.block : how.buffer;

    event_base* const base = event_base_new();
    evutil_socket_t fd = bench::listen_on_loopback(how.port, SOCK_NONBLOCK);
    evconnlistener* const listener =
        evconnlistener_new(base, accept_one, nullptr, LEV_OPT_CLOSE_ON_FREE, 0, fd);
    if (base == nullptr || listener == nullptr) return 1;
    return event_base_dispatch(base);
}
