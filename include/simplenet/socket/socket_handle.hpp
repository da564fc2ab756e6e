#pragma once
// socket_handle: the owner of a socket's descriptor, and the first base of every socket class of
// the blocking and nonblocking layers. Layer socket.

#include <simplenet/core/unique_fd.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// Base of all sockets of the blocking and nonblocking layers: owns the descriptor.
///
/// Destroying it closes the descriptor. Moving moves the descriptor. After `close()`, `release()`
/// or a move there is none, and every operation fails with `std::errc::bad_file_descriptor`.
class socket_handle {
public:
    /// Gives the descriptor back to the kernel. Idempotent. Written data is still sent (unless
    /// `set_linger()` says otherwise). But if received data was not read, TCP resets the
    /// connection, and the peer may lose what was written (RFC 9293, 3.6.1).
    void close() noexcept { fd_.reset(); }

    /// Gives the descriptor to the caller, in its current mode: `std::move(socket).release()`.
    [[nodiscard]] unique_fd release() && noexcept { return std::move(fd_); }
    /// The same for a named socket, without the move.
    [[nodiscard]] unique_fd release() & noexcept { return std::move(fd_); }

    /// The descriptor, still owned by this object; -1 if there is none.
    [[nodiscard]] int native_handle() const noexcept { return fd_.get(); }
    /// Whether there is a descriptor.
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }

protected:
    explicit socket_handle(unique_fd socket) noexcept
        : fd_{std::move(socket)} {}
    socket_handle(socket_handle&&) noexcept = default;
    socket_handle& operator=(socket_handle&&) noexcept = default;
    ~socket_handle() = default;

private:
    unique_fd fd_;
};

} // namespace simplenet::v0

#pragma GCC visibility pop
