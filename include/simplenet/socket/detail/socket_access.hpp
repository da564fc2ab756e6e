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

    /// The errno that stands where the kernel tells the end of the stream, once; 0 for none.
    [[nodiscard]] static int read_error(const stream_socket& of) noexcept { return of.read_error_; }
    static void expect_read_error(stream_socket& of, int error) noexcept { of.read_error_ = error; }
    /// The error to report for a read that failed with `why`.
    [[nodiscard]] static std::error_code read_failure(stream_socket& of,
                                                      std::error_code why) noexcept {
        if (of.read_error_ == 0 || why != errc::end_of_stream) return why;
        return {std::exchange(of.read_error_, 0), std::system_category()};
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
