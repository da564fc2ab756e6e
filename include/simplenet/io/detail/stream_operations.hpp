#pragma once
// The awaitables of streams that have no file of their own. Layer io, private.

#include <simplenet/core/error.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/received.hpp>

#include <coroutine>
#include <cstddef>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Turns a buffer held by a finished receive of this loop into a lease on the returned pool.
// Not through the operation's record: when the coroutine resumes, another socket may own it.
[[nodiscard]] receive_pool& lend(run_queue& queue) noexcept;

/// Awaitable of receive(); the contract is documented there.
class [[nodiscard]] receive_operation final : public awaitable_operation<starts::reads> {
public:
    explicit receive_operation(socket_record* of) noexcept
        : awaitable_operation{of, request::receive} {
        moved = 0;
    }
    receive_operation(receive_operation&& other) noexcept
        : awaitable_operation{std::move(other)} {
        moved = 0;
    }
    ~receive_operation() {
        // The frame was destroyed before the coroutine could take the received bytes.
        if (phase == state::finished && error == 0 && moved != 0)
            static_cast<void>(received{lend(*within_->queue), buffer, data, moved});
    }

    result<received> await_resume() noexcept {
        if (error != 0) return fail(code());
        return result<received>{std::in_place, lend(*within_->queue), buffer, data,
                                std::exchange(moved, 0)};
    }

    void run() noexcept override;

    /// Instead of awaiting it: takes what is there already, or operation_would_block.
    result<received> now() noexcept {
        if (!read_now()) return fail(std::errc::operation_would_block);
        if (error != 0) return fail(code());
        return result<received>{std::in_place, lend(run_queue::require_current()), buffer, data,
                                std::exchange(moved, 0)};
    }

    /// Its outcome: `count` bytes at `bytes`, in the buffer of the pool with this number.
    void hold(std::uint32_t number, std::byte* bytes, std::size_t count) noexcept {
        buffer = number;
        data = bytes;
        moved = count;
    }

    std::uint32_t buffer; // see hold()
};

/// Awaitable of readable(); the contract is documented there.
class [[nodiscard]] readable_operation final : public awaitable_operation<starts::reads> {
public:
    explicit readable_operation(socket_record* of) noexcept
        : awaitable_operation{of, request::perform_read} {}

    result<> await_resume() const noexcept {
        if (error != 0) return fail(code());
        return {};
    }

    [[nodiscard]] const char* name() const noexcept override;

private:
    bool perform() noexcept override;
};

/// A result that is available at once, and may be awaited like everything else.
class ready_result : public result<> {
public:
    using result<>::result;
    // NOLINTNEXTLINE(google-explicit-constructor): it is one.
    ready_result(result<> outcome) noexcept
        : result<>{outcome} {}

    static bool await_ready() noexcept { return true; }
    static bool await_suspend(std::coroutine_handle<>) noexcept { return false; }
    [[nodiscard]] result<> await_resume() const noexcept { return *this; }
};

/// Moves the bytes in the socket's queue into an empty pipe, without waiting; if there are none,
/// operation_would_block. Does not report the end of the stream.
[[nodiscard]] result<std::size_t> splice_ready(socket_record& of, int into,
                                               std::size_t most) noexcept;

// See stream_access.
[[nodiscard]] bool is_read_directly(const socket_record& of) noexcept;
[[nodiscard]] bool is_silent(const socket_record& of, silence by) noexcept;

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
