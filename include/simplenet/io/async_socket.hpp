#pragma once
// async_socket: the handle to a record that a loop owns; base of every socket of the runtime.
// Layer io.

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/detail/closed_operation.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// Base of all sockets of the runtime: a socket whose operations are awaited.
///
/// A handle to a record. The record belongs to the loop of the first awaited operation, and is
/// freed when the handle is gone and the kernel is done with it. Moving is always allowed, even
/// with operations in flight: they refer to the record, not to the handle. Destroying the handle is
/// close(). A loop that ends closes its sockets: operations on them then fail with
/// `std::errc::bad_file_descriptor`. Loop thread only.
class async_socket {
public:
    async_socket(async_socket&& other) noexcept
        : record_{std::exchange(other.record_, nullptr)} {}
    async_socket& operator=(async_socket&& other) noexcept {
        if (this != &other) {
            drop();
            record_ = std::exchange(other.record_, nullptr);
        }
        return *this;
    }
    ~async_socket() { drop(); }

    /// Gives the socket back to the kernel. Idempotent; never waits.
    ///
    /// The peer is told at once. Operations in flight end in a later turn, with operation_canceled
    /// unless they succeeded before; then the descriptor's number is free. A listener's is free at
    /// once. Bytes that were received ahead are dropped.
    void close() noexcept;

    /// Waits until close() has been called and the descriptor has been given back. Succeeds in the
    /// next turn if that has happened already, or the loop of the socket has ended.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Cancellation
    /// A stop ends only the wait.
    [[nodiscard]] detail::closed_operation closed() noexcept {
        return detail::closed_operation{record_};
    }

    /// The descriptor, to set and query socket options; -1 once closed or moved from. Do not read,
    /// write or wait on it: the loop does.
    [[nodiscard]] int native_handle() const noexcept;
    /// Whether the socket was neither closed nor moved from.
    [[nodiscard]] bool is_open() const noexcept { return native_handle() >= 0; }

protected:
    /// Takes a nonblocking socket; if this throws std::bad_alloc, the socket is closed.
    explicit async_socket(unique_fd socket);
    /// Takes over the record that another handle gave away.
    explicit async_socket(detail::socket_record& given) noexcept
        : record_{&given} {}
    [[nodiscard]] detail::socket_record& give_away() noexcept {
        return *std::exchange(record_, nullptr);
    }
    /// Null after a move.
    [[nodiscard]] detail::socket_record* record() const noexcept { return record_; }

private:
    void drop() noexcept;

    detail::socket_record* record_; // null only after a move
};

} // namespace runtime

} // namespace simplenet::v0

#pragma GCC visibility pop
