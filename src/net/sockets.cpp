// The sockets of the runtime: the members that their base classes do not have. Layer net.

#include "io/io_queue.hpp"
#include "io/receive_pool.hpp"
#include "socket/setup.hpp"

#include <simplenet/coro/scoped.hpp>
#include <simplenet/net/detail/local_byte_stream.hpp>
#include <simplenet/net/local_datagram.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/net/udp_socket.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

namespace simplenet::v0 {
namespace detail {

receive_pool& lend(run_queue& queue) noexcept {
    receive_pool& pool = io_queue::of(queue).pool();
    pool.lend();
    return pool;
}

void become_listener(socket_record& socket, unsigned ahead) {
    socket.kind = record_kind::listener;
    socket.accepting = std::make_unique<accept_state>(socket);
    socket.accepting->most_ahead = ahead;
    socket.readable = true; // connections may be waiting already
}

// Not in an anonymous namespace: when a unity batch includes this file, GCC 12 warns that the
// frames of such coroutines have members of types with internal linkage (-Wsubobject-linkage).

/// A socket that is being released; it keeps the record.
class leaving_socket final : public async_socket {
public:
    explicit leaving_socket(async_socket&& socket) noexcept
        : async_socket{std::move(socket)} {}
    using async_socket::record;
};

/// What leaves a loop when a socket is released from it.
struct released_socket {
    unique_fd fd;
    std::vector<std::byte> unread; // received but not read
    int read_error;                // the error that follows them, not yet reported; 0, or an errno
};

/// Takes everything out of a record once the kernel has finished with it.
task<result<released_socket>> release_socket(async_socket socket) {
    const leaving_socket leaving{std::move(socket)};
    socket_record* const record = leaving.record();
    if (record == nullptr || !record->is_open() || record->fd < 0) {
        co_return fail(std::errc::bad_file_descriptor);
    }
    SIMPLENET_EXPECTS(record->reader == nullptr && record->writer == nullptr,
                      "a socket was released with an operation in flight");
    std::vector<std::byte> unread;
    if (record->home != nullptr) {
        record->home->release(*record);
        const auto closed = co_await shield(closed_operation{record});
        // Not even a shield survives the end of the loop. Bytes that the kernel still receives
        // would be lost: what nobody takes is closed with a reset, see io_queue::drop().
        if (!closed) co_return fail(closed);
    }
    io_queue::take_unread(*record, unread);
    const int error = record->read_error();
    co_return released_socket{unique_fd{std::exchange(record->fd, -1)}, std::move(unread), error};
}

/// A `Socket` around a descriptor of the matching kind.
template <class Released, class Socket>
task<result<Released>> released_as(async_stream stream) {
    auto left = co_await release_socket(std::move(stream));
    if (!left) co_return fail(left);
    Released all{socket_access::make<Socket>(std::move(left->fd)), std::move(left->unread)};
    socket_access::expect_read_error(all.socket, left->read_error);
    co_return std::move(all);
}

/// The same for sockets that do not receive ahead.
template <class Socket>
task<result<Socket>> plain_released(async_socket socket) {
    auto left = co_await release_socket(std::move(socket));
    if (!left) co_return fail(left);
    co_return socket_access::make<Socket>(std::move(left->fd));
}

local_byte_stream::local_byte_stream(nonblocking::local_stream socket, bool alone)
    : async_stream{std::move(socket)} {
    // As above, unless nothing can be attached.
    record()->kind = alone ? record_kind::local_bytes : record_kind::local_stream;
    record()->reads_to_the_end = !alone;
}

} // namespace detail

inline namespace runtime {

namespace {

/// An `Awaited` around a socket of the layer below.
template <class Awaited, class Socket>
result<Awaited> awaited(result<Socket>&& made) {
    if (!made) return fail(made);
    return Awaited{*std::move(made)};
}

} // namespace

task<result<tcp_stream::released>> tcp_stream::release() && {
    return detail::released_as<released, nonblocking::tcp_stream>(std::move(*this));
}

task<result<local_stream::released>> local_stream::release() && {
    return detail::released_as<released, nonblocking::local_stream>(std::move(*this));
}

task<result<nonblocking::udp_socket>> udp_socket::release() && {
    return detail::plain_released<nonblocking::udp_socket>(std::move(*this));
}

task<result<nonblocking::local_datagram>> local_datagram::release() && {
    return detail::plain_released<nonblocking::local_datagram>(std::move(*this));
}

result<> tcp_listener::set_linger(std::optional<std::chrono::seconds> limit) noexcept {
    if (limit && limit->count() != 0) return fail(std::errc::invalid_argument);
    return tcp_settings::set_linger(limit);
}

result<> tcp_stream::set_linger(std::optional<std::chrono::seconds> limit) noexcept {
    if (limit && limit->count() != 0) return fail(std::errc::invalid_argument);
    const auto set = tcp_settings::set_linger(limit);
    if (set && record() != nullptr) record()->aborts = limit.has_value();
    return set;
}

local_stream::local_stream(nonblocking::local_stream socket)
    : async_stream{std::move(socket)} {
    // Descriptors may be attached to received bytes: a read stops there although more bytes follow
    // (unix(7)), and must not take more than was asked for.
    record()->kind = detail::record_kind::local_stream;
    record()->reads_to_the_end = true;
}

result<std::pair<local_stream, local_stream>> local_stream::pair() {
    auto made = nonblocking::local_stream::pair();
    if (!made) return fail(made);
    return std::pair{local_stream{std::move(made->first)}, local_stream{std::move(made->second)}};
}

result<tcp_listener> tcp_listener::bind(const endpoint& at, const listen_options& options) {
    auto made = nonblocking::tcp_listener::bind(at, options);
    if (!made) return fail(made);
    return tcp_listener{*std::move(made), options.accept_ahead};
}

result<local_listener> local_listener::bind(const simplenet::local_endpoint& at,
                                            const local_listen_options& options) {
    auto made = nonblocking::local_listener::bind(at, options);
    if (!made) return fail(made);
    return local_listener{*std::move(made), options.accept_ahead};
}

udp_socket::udp_socket(nonblocking::udp_socket socket)
    : async_socket{std::move(socket).release()} {
    record()->kind = detail::record_kind::datagrams;
}

local_datagram::local_datagram(nonblocking::local_datagram socket)
    : async_socket{std::move(socket).release()} {
    record()->kind = detail::record_kind::datagrams;
}

result<udp_socket> udp_socket::bind(const endpoint& at, const udp_options& options) {
    return awaited<udp_socket>(nonblocking::udp_socket::bind(at, options));
}
result<udp_socket> udp_socket::connect(const endpoint& peer) {
    return awaited<udp_socket>(nonblocking::udp_socket::connect(peer));
}
result<udp_socket> udp_socket::open_v4() {
    return awaited<udp_socket>(nonblocking::udp_socket::open_v4());
}
result<udp_socket> udp_socket::open_v6() {
    return awaited<udp_socket>(nonblocking::udp_socket::open_v6());
}
result<udp_socket> udp_socket::adopt(unique_fd fd) {
    return awaited<udp_socket>(nonblocking::udp_socket::adopt(std::move(fd)));
}

result<local_datagram> local_datagram::bind(const simplenet::local_endpoint& at,
                                            const local_bind_options& options) {
    return awaited<local_datagram>(nonblocking::local_datagram::bind(at, options));
}
result<local_datagram> local_datagram::connect(const simplenet::local_endpoint& peer) {
    return awaited<local_datagram>(nonblocking::local_datagram::connect(peer));
}
result<local_datagram> local_datagram::open() {
    return awaited<local_datagram>(nonblocking::local_datagram::open());
}
result<local_datagram> local_datagram::adopt(unique_fd fd) {
    return awaited<local_datagram>(nonblocking::local_datagram::adopt(std::move(fd)));
}
result<std::pair<local_datagram, local_datagram>> local_datagram::pair() {
    auto made = nonblocking::local_datagram::pair();
    if (!made) return fail(made);
    return std::pair{local_datagram{std::move(made->first)},
                     local_datagram{std::move(made->second)}};
}

} // namespace runtime
} // namespace simplenet::v0
