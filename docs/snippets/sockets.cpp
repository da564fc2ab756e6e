// The code of docs/usage/blocking-and-nonblocking.md.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <span>
#include <utility>

#include <poll.h>

using namespace simplenet;
using namespace std::chrono_literals;

//! [blocking]
// Serves one client after another.
result<> echo_one_by_one(const endpoint& at) {
    auto listener = blocking::tcp_listener::bind(at);
    if (!listener) return fail(listener);
    while (true) {
        auto client = listener->accept();
        if (!client) return fail(client);

        std::array<std::byte, 4096> buffer;
        while (auto count = client->read_some(buffer)) {
            if (!client->write_all(std::span{buffer}.first(*count))) break;
        }
    }
}
//! [blocking]

//! [nonblocking]
// Connects without a loop of this library: here with poll(2), in its shortest form.
result<nonblocking::tcp_stream> connect_by_hand(const endpoint& server) {
    auto stream = nonblocking::tcp_stream::connect(server); // starts connecting
    if (!stream) return stream;
    while (true) {
        const auto done = stream->finish_connect(); // asks for the outcome
        if (done) return stream;
        if (done.error() != std::errc::operation_would_block) return fail(done);

        pollfd wanted{.fd = stream->native_handle(), .events = POLLOUT, .revents = 0};
        ::poll(&wanted, 1, -1);
    }
}
//! [nonblocking]

//! [adopt]
// Puts a descriptor from elsewhere, for example from a service manager, on one of our loops.
result<tcp_listener> take_over(int descriptor) {
    auto socket = nonblocking::tcp_listener::adopt(unique_fd{descriptor});
    if (!socket) return fail(socket);
    return tcp_listener{*std::move(socket)};
}
//! [adopt]

//! [release]
// Moves a stream from a loop to a thread that blocks. Received but unread bytes come along.
task<result<blocking::tcp_stream>> hand_over(tcp_stream stream) {
    auto released = co_await std::move(stream).release();
    if (!released) co_return fail(released);
    if (!released->unread.empty()) co_return fail(std::errc::bad_message);
    co_return blocking::tcp_stream::from(std::move(released->socket));
}
//! [release]

//! [udp]
result<std::size_t> ask_time(const endpoint& server, mutable_buffer into) {
    auto socket = blocking::udp_socket::bind(endpoint::any(0));
    if (!socket) return fail(socket);
    if (auto sent = socket->send_to("time?", server); !sent) return fail(sent);
    const auto answer = socket->receive_from(into); // from any peer: check answer->from
    if (!answer) return fail(answer);
    return answer->size;
}
//! [udp]
