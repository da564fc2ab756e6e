#pragma once
// async_socket: the handle to a record that a loop owns; base of every socket of the runtime.
// Layer io.

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/detail/closed_operation.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// A socket whose operations are awaited: what all sockets of the runtime are.
///
/// A handle to a record. The record belongs to the loop of the first awaited operation, and is
/// freed when the handle is gone and the kernel is done with it. Moving is always allowed, with
/// operations in flight too: they know the record, not the handle. Destroying the handle is
/// close(). When a loop ends it closes its sockets: operations on them then fail with
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
    /// The peer is told at once. Operations in flight end with operation_canceled on a later turn;
    /// then the descriptor's number is free. What was received ahead is dropped.
    void close() noexcept;

    /// Waits until the descriptor is given back: after close(), or when the loop closes it.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Cancellation
    /// A stop ends only the wait.
    [[nodiscard]] detail::closed_operation closed() noexcept {
        return detail::closed_operation{record_};
    }

    /// The descriptor, for socket options and for asking; -1 once closed or moved from. Reading,
    /// writing or waiting on it takes from what the loop does.
    [[nodiscard]] int native_handle() const noexcept;
    /// Whether it was neither closed nor moved from.
    [[nodiscard]] bool is_open() const noexcept { return native_handle() >= 0; }

protected:
    /// Takes a nonblocking socket; throws std::bad_alloc, having closed it.
    explicit async_socket(unique_fd socket);
    /// Takes over what another handle gave away.
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
