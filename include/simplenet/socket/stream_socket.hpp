#pragma once
// stream_socket: reading, writing and half-close of the streams of the blocking and nonblocking
// layers. Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/socket/socket_handle.hpp>

#include <cstddef>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

namespace detail {
struct socket_access;
} // namespace detail

/// A stream that owns its descriptor: each operation is one system call. The descriptor's mode
/// decides whether the call blocks.
///
/// @par Thread safety
/// One thread may read while another writes. All other concurrent use needs a lock.
class stream_socket : public socket_handle {
public:
    /// Reads at least one byte and at most `into.size()`.
    ///
    /// @pre `into` is not empty.
    /// @return The number of bytes read, at least 1.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the peer will send no more.
    /// - `std::errc::operation_would_block`: no data has arrived, and the stream is nonblocking.
    /// - `std::errc::connection_reset`: the peer aborted; reported once.
    /// - Any other error of recv(2).
    [[nodiscard]] result<std::size_t> read_some(mutable_buffer into) noexcept;

    /// Writes at least one byte of `from`, and as many as the send buffer takes. Writes nothing if
    /// `from` is empty. A blocking stream waits until all bytes are taken, unless an error or a
    /// signal handler interrupts it.
    ///
    /// @return The number of bytes that the kernel took. The peer may not have them yet.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the send buffer is full, or the connection is not yet
    ///   established, and the stream is nonblocking.
    /// - `std::errc::connection_reset`, `std::errc::broken_pipe`: the peer is gone or this side was
    ///   shut down. SIGPIPE is never raised.
    /// - Any other error of send(2).
    [[nodiscard]] result<std::size_t> write_some(const_buffer from,
                                                 write_options options = {}) noexcept;
    /// The same for several buffers, as if they were one. A call takes at most IOV_MAX (1024)
    /// that are not empty.
    [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> from,
                                                 write_options options = {}) noexcept;

    /// Tells the peer that nothing more will be written: after the last byte its reads report
    /// `errc::end_of_stream`. Reading continues.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: no connection yet, or none any more.
    [[nodiscard]] result<> shutdown_write() noexcept;

protected:
    explicit stream_socket(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}
    stream_socket(stream_socket&&) noexcept = default;
    stream_socket& operator=(stream_socket&&) noexcept = default;
    ~stream_socket() = default;

private:
    friend struct detail::socket_access;

    // The errno that stands where the kernel tells the end of the stream, once; 0 for none. The
    // kernel reports an error once, and the runtime may have received it before a release().
    int read_error_ = 0;
};

} // namespace simplenet::v0

#pragma GCC visibility pop
