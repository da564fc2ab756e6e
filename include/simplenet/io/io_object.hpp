#pragma once
// io_object: the handle to a record that a loop owns; base of every socket of the runtime.
// Layer io, private; its public members are those of the sockets.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {
// The library's own: not exported, since it is first named here.
struct socket_record;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class io_object;

/// What leaves a loop when a socket is released from it.
struct released_socket {
    unique_fd fd;
    std::vector<std::byte> unread; // received already, and not read
    int read_error;                // received behind that, and not told; 0, or an errno
};
/// Takes all out of a record once the kernel has let go.
[[nodiscard]] task<result<released_socket>> release_socket(io_object socket);

/// Awaitable of closed(); the contract is documented there.
class [[nodiscard]] closed_operation final : public suspension,
                                             public list_hook<>,
                                             public awaited_from_outside<closed_operation> {
public:
    explicit closed_operation(socket_record* of) noexcept
        : record_{of} {}
    closed_operation(closed_operation&& other) noexcept
        : suspension{}
        , list_hook{}
        , record_{other.record_} {}
    ~closed_operation();

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<closed_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        return start(caller, scope_of(caller, at));
    }
    result<> await_resume() noexcept;

    void on_stop(stop_reason reason) noexcept override;
    void describe(std::string& text) override { text += "the end of a close"; }

private:
    bool start(std::coroutine_handle<> caller, scope& within) noexcept;

    socket_record* record_;
    stop_reason stopped_ = stop_reason::none;
};

/// A socket as its user holds it. Moving is always allowed, with operations in flight too: they
/// know the record, not the handle. The record belongs to the loop of its first operation, and is
/// freed when the handle is gone and the kernel is done.
class io_object {
public:
    io_object(io_object&& other) noexcept
        : record_{std::exchange(other.record_, nullptr)} {}
    io_object& operator=(io_object&& other) noexcept {
        if (this != &other) {
            drop();
            record_ = std::exchange(other.record_, nullptr);
        }
        return *this;
    }
    ~io_object() { drop(); }

    /// Gives the socket back to the kernel. Idempotent; never waits.
    ///
    /// The peer is told at once. Operations in flight end with operation_canceled on a later turn;
    /// then the descriptor's number is free. What was received ahead is dropped.
    void close() noexcept;

    /// Waits until the descriptor is given back: after close(), or when the loop closes it.
    ///
    /// @par Cancellation
    /// A stop ends only the wait.
    [[nodiscard]] closed_operation closed() noexcept { return closed_operation{record_}; }

    /// The descriptor, for socket options and for asking; -1 once closed or moved from. Reading,
    /// writing or waiting on it takes from what the loop does.
    [[nodiscard]] int native_handle() const noexcept;
    /// Whether it was neither closed nor moved from.
    [[nodiscard]] bool is_open() const noexcept { return native_handle() >= 0; }

protected:
    /// Takes a nonblocking socket; throws std::bad_alloc, having closed it.
    explicit io_object(unique_fd socket);
    /// Takes over what another handle gave away.
    explicit io_object(socket_record& given) noexcept
        : record_{&given} {}
    [[nodiscard]] socket_record& give_away() noexcept { return *std::exchange(record_, nullptr); }

    [[nodiscard]] socket_record* record() const noexcept { return record_; }
    void set_idle_timeout(std::chrono::nanoseconds limit);
    void abort_on_close(bool abort) noexcept;
    /// Descriptors may be attached to what is received: a read ends where they are, with more
    /// behind them (unix(7)), and must not take more than was asked for.
    void expect_descriptors() noexcept;
    /// The first read fails with `error`, an errno; 0 for none.
    void expect_read_error(int error) noexcept;

private:
    friend task<result<released_socket>> release_socket(io_object socket);
    void drop() noexcept;

    socket_record* record_; // null only after a move
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
