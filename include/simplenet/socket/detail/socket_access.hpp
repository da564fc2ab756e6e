#pragma once
// socket_access: the access to sockets that the library has and users do not. Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/socket/stream_socket.hpp>

#include <system_error>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A friend of the socket classes of the blocking and nonblocking layers.
struct socket_access {
    /// A `Socket` around a descriptor that is known to have the right kind and mode. Other callers
    /// use adopt().
    template <class Socket>
    [[nodiscard]] static Socket make(unique_fd fd) noexcept {
        return Socket{std::move(fd)};
    }

    /// The errno with which the next read fails; 0 for none.
    [[nodiscard]] static int read_error(const stream_socket& of) noexcept { return of.read_error_; }
    static void expect_read_error(stream_socket& of, int error) noexcept { of.read_error_ = error; }
    /// The same, and clears it, because it is reported once.
    [[nodiscard]] static std::error_code take_read_error(stream_socket& of) noexcept {
        return {std::exchange(of.read_error_, 0), std::system_category()};
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
