#pragma once
// raw_peer: the other end of a connection, with plain blocking system calls and nothing of the
// library: it sees exactly what the kernel did. It can misbehave.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/nonblocking/tcp_stream.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// Throws errno as a std::system_error if `outcome` is negative; otherwise returns it.
template <class Outcome>
Outcome checked(Outcome outcome) {
    if (outcome < 0) throw std::system_error{errno, std::system_category()};
    return outcome;
}

/// The kernel does not restart a call on a socket with a time limit (signal(7)), and work of an
/// io_uring of this thread interrupts it like a signal.
template <class Call>
ssize_t restarted(Call call) {
    for (;;) {
        const ssize_t outcome = call();
        if (outcome >= 0 || errno != EINTR) return outcome;
    }
}

class raw_peer {
public:
    /// Waits at most 10 s in a call, so that a test fails instead of hanging.
    explicit raw_peer(unique_fd socket)
        : socket_{std::move(socket)} {
        const timeval limit{.tv_sec = 10, .tv_usec = 0};
        for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
            checked(::setsockopt(fd(), SOL_SOCKET, option, &limit, sizeof limit));
        }
    }

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// Sends all of it.
    void send(std::string_view text, int flags = 0) {
        while (!text.empty()) {
            const ssize_t count = checked(restarted(
                [&] { return ::send(fd(), text.data(), text.size(), flags | MSG_NOSIGNAL); }));
            text.remove_prefix(static_cast<std::size_t>(count));
        }
    }

    /// Sends until the kernel accepts no more; returns the number of bytes sent.
    std::size_t send_until_full(std::string_view text) {
        std::size_t total = 0;
        for (;;) {
            const ssize_t count =
                ::send(fd(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (count < 0) return total;
            total += static_cast<std::size_t>(count);
        }
    }

    /// Receives exactly `size` bytes, or fewer if the stream ends or fails before.
    std::string receive(std::size_t size) {
        std::string text(size, '\0');
        std::size_t have = 0;
        while (have < size) {
            const ssize_t count =
                restarted([&] { return ::recv(fd(), text.data() + have, size - have, 0); });
            if (count <= 0) break;
            have += static_cast<std::size_t>(count);
        }
        text.resize(have);
        return text;
    }

    /// Reads to the end: `end_of_stream`, or the error of recv(2).
    std::error_code receive_to_the_end() {
        std::array<char, 65536> scratch;
        for (;;) {
            const ssize_t count =
                restarted([&] { return ::recv(fd(), scratch.data(), scratch.size(), 0); });
            if (count == 0) return errc::end_of_stream;
            if (count < 0) return {errno, std::system_category()};
        }
    }

    /// The present result of recv(2), without waiting: a count, or a negated errno.
    int peek() {
        char byte = 0;
        const ssize_t count = ::recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return count < 0 ? -errno : static_cast<int>(count);
    }

    /// A connection that the other side has reset already stays as it is.
    void shutdown_write() {
        if (::shutdown(fd(), SHUT_WR) != 0 && errno != ENOTCONN) checked(-1);
    }

    /// Aborts a TCP connection: the other side gets a reset.
    void reset() {
        const linger abort{.l_onoff = 1, .l_linger = 0};
        checked(::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort));
        socket_.reset();
    }

    void close() { socket_.reset(); }

private:
    unique_fd socket_;
};

template <class Stream>
struct raw_connection {
    Stream ours;
    raw_peer theirs;
};

/// Limits on the kernel's buffers of a connection; 0: the kernel decides.
struct buffer_sizes {
    int ours = 0;
    int theirs = 0;
};
inline constexpr buffer_sizes small_buffers{.ours = 8192, .theirs = 8192};

inline void set_buffers(int fd, int bytes) {
    if (bytes == 0) return;
    for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
        checked(::setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes));
    }
}

/// Accepts `peer`. Another process may connect first: a test that expects to be refused by a port
/// that was free until now.
inline unique_fd accept_from(int listening, const unique_fd& peer) {
    for (;;) {
        sockaddr_in expected{};
        sockaddr_in found{};
        socklen_t size = sizeof expected;
        checked(::getsockname(peer.get(), reinterpret_cast<sockaddr*>(&expected), &size));
        unique_fd accepted{checked(
            ::accept4(listening, reinterpret_cast<sockaddr*>(&found), &size, SOCK_CLOEXEC))};
        if (found.sin_port == expected.sin_port) return accepted;
    }
}

/// An address of loopback that is used for the first time in a while. On a single one, ports of
/// closed connections (TIME_WAIT) would fill the range, and bind(2) would search it for
/// milliseconds.
inline in_addr fresh_loopback() {
    static std::atomic<std::uint32_t> calls = 0;
    constexpr std::uint32_t all = 0xff'fffe; // but 127.0.0.0 and 127.255.255.255
    const auto process = static_cast<std::uint32_t>(::getpid());
    const std::uint32_t host = 1 + (process * 4099 + calls++) % all;
    return {htonl(0x7f00'0000 + host)};
}

/// Port 0 of an address of loopback at which no other process listens: a client of a server that
/// has already ended would reach theirs, and be counted there.
inline endpoint own_endpoint() {
    static const in_addr address = fresh_loopback();
    return {ip_address::from_bytes(std::as_bytes(std::span{&address, 1}).first<4>()), 0};
}

/// The two ends of a TCP connection over loopback.
inline std::pair<unique_fd, unique_fd> tcp_ends(buffer_sizes sizes = {}) {
    const unique_fd listening{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    set_buffers(listening.get(), sizes.theirs); // accepted sockets inherit them
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = fresh_loopback();
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    checked(::bind(listening.get(), any, size));
    checked(::listen(listening.get(), 1));
    checked(::getsockname(listening.get(), any, &size));
    unique_fd first{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    set_buffers(first.get(), sizes.ours);
    checked(::connect(first.get(), any, size));
    unique_fd second = accept_from(listening.get(), first);
    return {std::move(first), std::move(second)};
}

inline std::pair<unique_fd, unique_fd> local_ends(buffer_sizes sizes = {}) {
    std::array<int, 2> fds{};
    checked(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()));
    unique_fd first{fds[0]};
    unique_fd second{fds[1]};
    set_buffers(first.get(), sizes.ours);
    set_buffers(second.get(), sizes.theirs);
    return {std::move(first), std::move(second)};
}

inline tcp_stream make_tcp_stream(unique_fd fd) {
    return tcp_stream{or_throw(nonblocking::tcp_stream::adopt(std::move(fd)))};
}
inline local_stream make_local_stream(unique_fd fd) {
    return local_stream{or_throw(nonblocking::local_stream::adopt(std::move(fd)))};
}

/// A stream of the runtime, and the raw end on the other side.
inline raw_connection<tcp_stream> connect_raw(buffer_sizes sizes = {}) {
    auto [ours, theirs] = tcp_ends(sizes);
    return {make_tcp_stream(std::move(ours)), raw_peer{std::move(theirs)}};
}
inline raw_connection<local_stream> connect_raw_local(buffer_sizes sizes = {}) {
    auto [ours, theirs] = local_ends(sizes);
    return {make_local_stream(std::move(ours)), raw_peer{std::move(theirs)}};
}

struct stream_pair {
    tcp_stream ours;
    tcp_stream theirs;
};

/// Two streams of the runtime connected over loopback.
inline stream_pair connected_pair(buffer_sizes sizes = {}) {
    auto [ours, theirs] = tcp_ends(sizes);
    return {make_tcp_stream(std::move(ours)), make_tcp_stream(std::move(theirs))};
}

} // namespace simplenet::v0::testing
