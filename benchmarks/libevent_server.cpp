// Echo with libevent: bufferevents on epoll, whose input buffer becomes the output without a copy.

#include "server_options.hpp"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

namespace {

void have_read(bufferevent* of, void*) {
    evbuffer_add_buffer(bufferevent_get_output(of), bufferevent_get_input(of));
}

void have_event(bufferevent* of, short what, void*) {
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) bufferevent_free(of);
}

void accept_one(evconnlistener* listener, evutil_socket_t fd, sockaddr*, int, void*) {
    bench::set_no_delay(fd);
    bufferevent* const of =
        bufferevent_socket_new(evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(of, have_read, nullptr, have_event, nullptr);
    bufferevent_enable(of, EV_READ | EV_WRITE);
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto how = bench::server_options::read(given, "epoll", {"echo"});
    given.done();

    event_base* const base = event_base_new();
    evutil_socket_t fd = bench::listen_on_loopback(how.port, SOCK_NONBLOCK);
    evconnlistener* const listener =
        evconnlistener_new(base, accept_one, nullptr, LEV_OPT_CLOSE_ON_FREE, 0, fd);
    if (base == nullptr || listener == nullptr) return 1;
    return event_base_dispatch(base);
}
