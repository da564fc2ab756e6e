#pragma once
// What the servers without a library share: edge-triggered epoll over a listening socket.

#include "server_options.hpp"

#include <array>
#include <cstddef>
#include <type_traits>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace bench {

template <class Connection>
class edges {
public:
    /// Reports the edges of `of.fd`, including those that it has already.
    void add(Connection& of) const {
        epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                          .data = {.ptr = &of}};
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, of.fd, &event);
    }

    /// Serves every connection for ever. `make(fd)` returns a new connection, which has its
    /// descriptor as `fd`; `serve(connection)` is called at each edge, and returns whether the
    /// connection goes on.
    template <class Make, class Serve>
    [[noreturn]] void serve(int listener, Make make, Serve serve) const {
        epoll_event listening{.events = EPOLLIN, .data = {.ptr = nullptr}};
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener, &listening);
        const auto accept_all = [&] {
            while (true) {
                const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd < 0) return;
                set_no_delay(fd);
                add(*make(fd));
            }
        };
        std::array<epoll_event, 256> events{};
        while (true) {
            const int count = ::epoll_wait(epoll_, events.data(), int{events.size()}, -1);
            for (int at = 0; at < count; ++at) {
                auto* const of =
                    static_cast<Connection*>(events[static_cast<std::size_t>(at)].data.ptr);
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
    int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

template <class Make, class Serve>
[[noreturn]] void serve_at_edges(int listener, Make make, Serve serve) {
    const edges<std::remove_pointer_t<decltype(make(listener))>> all;
    all.serve(listener, make, serve);
}

} // namespace bench
