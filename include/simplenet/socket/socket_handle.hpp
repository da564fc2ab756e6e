#pragma once
// socket_handle: the owner of a socket's descriptor, and the first base of every socket class of
// the blocking and nonblocking layers. Layer socket.

#include <simplenet/core/unique_fd.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A descriptor known to be the right kind of socket in the right mode. Constructors that take
/// one trust it; `adopt()` is for everybody else.
class known_socket {
public:
    explicit known_socket(unique_fd fd) noexcept
        : fd_{std::move(fd)} {}

    [[nodiscard]] unique_fd take() && noexcept { return std::move(fd_); }

private:
    unique_fd fd_;
};

/// What every socket object has: it owns one descriptor, closes it when destroyed, and can be
/// moved. After `close()`, `release()` or a move it owns none, and every operation fails with
/// `std::errc::bad_file_descriptor`.
class socket_handle {
public:
    /// The descriptor, still owned by this object; -1 if there is none.
    [[nodiscard]] int native_handle() const noexcept { return fd_.get(); }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }

    /// Gives the descriptor back to the kernel; does nothing the second time. What was written
    /// still goes out (unless `set_linger()` says otherwise), but if input has arrived that
    /// nobody read, TCP resets the connection and the peer may lose it (RFC 9293, 3.6.1).
    void close() noexcept { fd_.reset(); }

    /// Gives the descriptor to the caller, in the mode it is in.
    [[nodiscard]] unique_fd release() noexcept { return std::move(fd_); }

protected:
    explicit socket_handle(known_socket socket) noexcept
        : fd_{std::move(socket).take()} {}
    socket_handle(socket_handle&&) noexcept = default;
    socket_handle& operator=(socket_handle&&) noexcept = default;
    ~socket_handle() = default;

private:
    unique_fd fd_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
