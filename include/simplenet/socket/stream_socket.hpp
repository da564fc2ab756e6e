#pragma once
// What the streams of the blocking and nonblocking layers share: reading, writing, half-close.
// Layer socket. Whether a call waits is a mode of the descriptor, so most of it is written once.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/socket/socket_handle.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <cstddef>
#include <expected>
#include <span>
#include <system_error>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

namespace streams {

// The members below have the documentation.

[[nodiscard]] result<std::size_t> read_some(int fd, mutable_buffer into) noexcept;
[[nodiscard]] result<std::size_t> write_some(int fd, const_buffer from) noexcept;
[[nodiscard]] result<std::size_t> write_some(int fd, std::span<const const_buffer> from) noexcept;
[[nodiscard]] transfer_result read_exact(int fd, mutable_buffer into) noexcept;
[[nodiscard]] transfer_result write_all(int fd, const_buffer from) noexcept;
[[nodiscard]] transfer_result write_all(int fd, std::span<const const_buffer> from) noexcept;
[[nodiscard]] result<> shutdown_write(int fd) noexcept;

} // namespace streams

/// Reading and writing of streams, one system call each.
///
/// @par Thread safety
/// One thread may read while another writes. Everything else needs a lock around it.
template <class Base>
class with_stream_transfers : public Base {
public:
    using Base::Base;

    /// Reads at least one byte and at most `into.size()`.
    ///
    /// @pre `into` is not empty.
    /// @return The number of bytes read, at least 1.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the peer will send no more.
    /// - `std::errc::operation_would_block`: nothing is there yet, and the stream is nonblocking.
    /// - `std::errc::connection_reset`: the peer aborted; reported once.
    /// - Anything else recv(2) reports.
    [[nodiscard]] result<std::size_t> read_some(mutable_buffer into) noexcept {
        if (read_error_ != 0) [[unlikely]]
            return fail(take_read_error());
        return streams::read_some(this->native_handle(), into);
    }

    /// Writes at least one byte of `from`, and as many as the send buffer takes; nothing if
    /// `from` is empty. A blocking stream waits until all of it is taken, unless an error or a
    /// signal handler comes between.
    ///
    /// @return The number of bytes taken: the kernel has them, the peer perhaps not yet.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the send buffer is full, or the connection is still
    ///   being made, and the stream is nonblocking.
    /// - `std::errc::connection_reset`, `std::errc::broken_pipe`: the peer is gone or this side
    ///   was shut down. No SIGPIPE is raised.
    /// - Anything else send(2) reports.
    [[nodiscard]] result<std::size_t> write_some(const_buffer from) noexcept {
        return streams::write_some(this->native_handle(), from);
    }
    /// The same for several buffers, as if they were one. A call takes at most IOV_MAX (1024)
    /// that are not empty.
    [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> from) noexcept {
        return streams::write_some(this->native_handle(), from);
    }

    /// Tells the peer that nothing more will be written; after what was written it reads
    /// `errc::end_of_stream`. Reading goes on.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: no connection yet, or none any more.
    [[nodiscard]] result<> shutdown_write() noexcept {
        return streams::shutdown_write(this->native_handle());
    }

    /// For the library: the next read fails with `error`, an errno; 0 for none. The kernel tells an
    /// error once, and what the runtime received ahead of a release() may have been one.
    void expect_read_error(int error) noexcept { read_error_ = error; }
    [[nodiscard]] int read_error() const noexcept { return read_error_; }

protected:
    [[nodiscard]] std::error_code take_read_error() noexcept {
        return {std::exchange(read_error_, 0), std::system_category()};
    }

private:
    int read_error_ = 0;
};

/// What only a stream that waits can do.
template <class Base>
class with_whole_transfers : public Base {
public:
    using Base::Base;

    /// Fills `into`, waiting as often as that takes; succeeds at once if `into` is empty.
    ///
    /// @return `into.size()`, or the error of `read_some()` with the number of bytes that came
    ///         before it; those are in `into`.
    [[nodiscard]] transfer_result read_exact(mutable_buffer into) noexcept {
        if (this->read_error() != 0 && !into.empty()) [[unlikely]] {
            return std::unexpected{transfer_error{this->take_read_error(), 0}};
        }
        return streams::read_exact(this->native_handle(), into);
    }

    /// Writes all of `from`, waiting as often as that takes; succeeds at once if it is empty.
    ///
    /// @return `from.size()`, or the error of `write_some()` with the number of bytes that the
    ///         kernel took before it.
    [[nodiscard]] transfer_result write_all(const_buffer from) noexcept {
        return streams::write_all(this->native_handle(), from);
    }
    /// The same for any number of buffers, as if they were one.
    [[nodiscard]] transfer_result write_all(std::span<const const_buffer> from) noexcept {
        return streams::write_all(this->native_handle(), from);
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
