// Echo with system calls alone: edge-triggered epoll, and a short read counts as "empty". The
// baseline for a library: only the cost of the kernel remains.

#include "server_options.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace {

struct connection {
    int fd;
    std::size_t unsent_from = 0;
    std::size_t unsent_to = 0; // offset in the buffer; equal: nothing waits to be sent
    std::unique_ptr<char[]> buffer;
};

class server {
public:
    server(int listener, std::size_t buffer)
        : listener_{listener}
        , buffer_{buffer}
        , epoll_{::epoll_create1(EPOLL_CLOEXEC)} {
        epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
    }

    [[noreturn]] void run() {
        std::array<epoll_event, 256> events{};
        while (true) {
            const int count = ::epoll_wait(epoll_, events.data(), int{events.size()}, -1);
            for (int at = 0; at < count; ++at) {
                auto* const of =
                    static_cast<connection*>(events[static_cast<std::size_t>(at)].data.ptr);
                if (of == nullptr) {
                    accept_all();
                } else if (!serve(*of)) {
                    ::close(of->fd);
                    delete of; // no two events of one turn are for the same descriptor
                }
            }
        }
    }

private:
    void accept_all() {
        while (true) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) return;
            bench::set_no_delay(fd);
            auto* const of = new connection{.fd = fd, .buffer = std::make_unique<char[]>(buffer_)};
            epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                              .data = {.ptr = of}};
            ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
        }
    }

    bool serve(connection& of) const {
        while (true) {
            while (of.unsent_from != of.unsent_to) {
                const ssize_t sent = ::send(of.fd, of.buffer.get() + of.unsent_from,
                                            of.unsent_to - of.unsent_from, MSG_NOSIGNAL);
                if (sent < 0) return errno == EAGAIN;
                of.unsent_from += static_cast<std::size_t>(sent);
            }
            const ssize_t got = ::recv(of.fd, of.buffer.get(), buffer_, 0);
            if (got < 0) return errno == EAGAIN;
            if (got == 0) return false;
            of.unsent_from = 0;
            of.unsent_to = static_cast<std::size_t>(got);
            if (of.unsent_to == buffer_) continue;
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

    int listener_;
    std::size_t buffer_;
    int epoll_;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto how = bench::server_options::read(given, "epoll", {"echo"});
    given.done();
    server{bench::listen_on_loopback(how.port, SOCK_NONBLOCK), how.buffer}.run();
}
