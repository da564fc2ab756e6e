#pragma once
// duplex(): two connected streams in memory, for tests and for parts of one program. Layer stream.
// No descriptor, no system call, no timing: each end reads what the other one writes.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/io/received.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

struct duplex_pipe;
struct duplex_link;

/// One read or write in progress at an end of a duplex. Lies in the awaitable.
///
/// Invariant: while waiting or queued it is the reader or writer of its pipe, and the `current` of
/// its scope, so it must not be moved or destroyed. Its destructor still leaves the pipe, because
/// the end of a loop destroys frames.
class duplex_operation : public suspension, public awaited_from_outside<duplex_operation> {
public:
    using is_leaf = void; // see with_timeout()

    duplex_operation(duplex_pipe* at, request what, void* bytes, std::size_t count) noexcept
        : pipe_{at}
        , kind_{what}
        , data_{static_cast<std::byte*>(bytes)}
        , size_{count} {}
    duplex_operation(duplex_pipe* at, request what, std::span<const const_buffer> from) noexcept
        : pipe_{at}
        , kind_{what}
        , size_{from.size()}
        , buffers_{from.data()}
        , vectored_{true} {}
    duplex_operation& operator=(duplex_operation&&) = delete;

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<duplex_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        return start(caller, scope_of(caller, at));
    }
    bool start(std::coroutine_handle<> caller, scope& within) noexcept;

    void run() noexcept final;
    void on_stop(stop_reason reason) noexcept final;
    void describe(std::string& text) final;

protected:
    /// Does as much as is possible now. @pre nothing in this direction is in flight.
    [[nodiscard]] result<std::size_t> attempt_now() noexcept;

    // Only idle ones move.
    duplex_operation(duplex_operation&& other) noexcept
        : pipe_{other.pipe_}
        , kind_{other.kind_}
        , data_{other.data_}
        , size_{other.size_}
        , buffers_{other.buffers_}
        , vectored_{other.vectored_} {}
    ~duplex_operation() {
        if (phase_ == state::waiting || phase_ == state::queued) leave();
    }

    [[nodiscard]] std::error_code error() const noexcept { return error_; }
    [[nodiscard]] std::size_t moved() const noexcept { return moved_; }

private:
    friend duplex_pipe;

    // As in detail::operation.
    enum class state : std::uint8_t { idle, waiting, queued, finished };

    [[nodiscard]] bool closed() const noexcept;
    bool attempt() noexcept;
    bool attempt_read() noexcept;
    bool attempt_write() noexcept;
    [[nodiscard]] const_buffer next_bytes() noexcept;
    void enter(state phase, scope& within) noexcept;
    void finish(std::error_code error) noexcept;
    void leave() noexcept;

    duplex_pipe* pipe_; // borrowed until it is over; null for an end that was moved from
    request kind_;
    state phase_ = state::idle;
    stop_reason stopped_ = stop_reason::none; // a stop while queued: the attempt decides
    std::byte* data_ = nullptr;               // of the one buffer
    std::size_t size_ = 0;                    // bytes of it, or buffers from `buffers_`
    const const_buffer* buffers_ = nullptr;   // of a vectored write: the next buffer
    std::size_t skip_ = 0;                    // of a vectored write: bytes of it already moved
    bool vectored_ = false;
    std::size_t moved_ = 0;
    std::error_code error_;
};

/// Awaitable of read_some() and write_some() of a duplex_stream.
class [[nodiscard]] duplex_some final : public duplex_operation {
public:
    using duplex_operation::duplex_operation;
    result<std::size_t> await_resume() const noexcept {
        if (error()) return fail(error());
        return moved();
    }
    /// Instead of the await: what is possible now, or operation_would_block.
    [[nodiscard]] result<std::size_t> now() noexcept { return attempt_now(); }
};

/// Awaitable of readable() of a duplex_stream.
class [[nodiscard]] duplex_readable final : public duplex_operation {
public:
    using duplex_operation::duplex_operation;
    result<> await_resume() const noexcept {
        if (error()) return fail(error());
        return {};
    }
    /// Instead of the await: whether it would not wait, or why not.
    [[nodiscard]] result<> now() noexcept {
        if (const auto done = attempt_now(); !done) return fail(done);
        return {};
    }
};

/// Awaitable of async_read_exact() and async_write_all() on a duplex_stream.
class [[nodiscard]] duplex_whole final : public duplex_operation {
public:
    using duplex_operation::duplex_operation;
    transfer_result await_resume() const noexcept {
        if (error()) return std::unexpected{transfer_error{error(), moved()}};
        return moved();
    }
};

} // namespace detail

inline namespace runtime {

/// One of two connected ends in memory. Behaves like tcp_stream: back-pressure, half-close, one
/// reader and one writer at a time, stops and deadlines that lose nothing.
///
/// A handle: moving is always allowed, even with operations in flight; destroying it is close().
/// Both ends belong to one loop's thread, and may outlive the loop.
///
/// @par Example
/// @snippet testing.cpp duplex
class duplex_stream {
public:
    duplex_stream(duplex_stream&& other) noexcept
        : link_{std::exchange(other.link_, nullptr)}
        , side_{other.side_} {}
    duplex_stream& operator=(duplex_stream&& other) noexcept;
    ~duplex_stream();

    /// Reads at least one byte and at most `into.size()`.
    ///
    /// @pre `into` is not empty, and no other read is in flight at this end.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the other end shut down or closed, and all its bytes are read.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop, close() or a deadline
    ///   came first; nothing was read.
    /// - `std::errc::bad_file_descriptor`: this end is already closed.
    /// @par Cancellation
    /// Bytes that were there before the stop are a success. After a stop the stream is intact.
    /// @par Cost
    /// One copy; no allocation, no system call.
    [[nodiscard]] detail::duplex_some read_some(mutable_buffer into) noexcept;

    /// Waits until something is there, bytes or the end of the stream, and takes nothing: a read
    /// that follows does not wait, and try_receive() finds it.
    ///
    /// @pre No other read is in flight at this end.
    /// @return An awaitable of `result<>`: success also if the next read will report the end.
    ///
    /// @par Errors
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`,
    ///   `std::errc::bad_file_descriptor`: as for read_some().
    /// @par Cancellation
    /// As for read_some().
    /// @par Cost
    /// No allocation, no system call.
    [[nodiscard]] detail::duplex_readable readable() noexcept;

    /// Takes what is there already, up to 16 KiB, without waiting.
    ///
    /// @pre No read is in flight at this end.
    /// @return A lease on at least one byte.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: nothing is there.
    /// - `std::errc::not_enough_memory`: nothing was taken.
    /// - Otherwise as for read_some(), except for a stop, which does not prevent it.
    /// @par Cost
    /// One allocation and one copy.
    [[nodiscard]] result<received> try_receive() noexcept;

    /// Writes at least one byte of `from`, and as many as there is room for; 0 if `from` is empty.
    /// The options have no effect.
    ///
    /// @pre No other write is in flight at this end.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes written.
    ///
    /// @par Errors
    /// - `std::errc::broken_pipe`: the other end is closed, or this one shut down writing.
    /// - Otherwise as for read_some(); nothing was written.
    /// @par Cancellation
    /// As for read_some().
    /// @par Cost
    /// As for read_some().
    [[nodiscard]] detail::duplex_some write_some(const_buffer from,
                                                 write_options options = {}) noexcept;
    /// The same for several buffers, one after the other.
    ///
    /// @param from  Borrowed until the await returns, including the array of buffers.
    [[nodiscard]] detail::duplex_some write_some(std::span<const const_buffer> from,
                                                 write_options options = {}) noexcept;

    /// Writes what there is room for now, without waiting; 0 if `from` is empty.
    ///
    /// @pre No write is in flight at this end.
    /// @return The number of bytes written: at least 1, unless `from` is empty.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: there is no room.
    /// - Otherwise as for write_some(), except for a stop, which does not prevent it.
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from) noexcept;
    /// The same for several buffers, one after the other.
    [[nodiscard]] result<std::size_t> try_write_some(std::span<const const_buffer> from) noexcept;

    /// Tells the other end, after the bytes already written, that nothing more will come; reading
    /// continues. Ends a write in flight with `std::errc::broken_pipe`. Never waits.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: already closed.
    [[nodiscard]] detail::ready_result shutdown_write() noexcept;

    /// Ends both directions. Idempotent; never waits.
    ///
    /// The other end reads the bytes already written and then the end of the stream; its writes
    /// fail with `std::errc::broken_pipe`. Operations in flight here end with operation_canceled in
    /// a later turn. Bytes that were not read here are dropped.
    void close() noexcept;

    /// Whether the end was neither closed nor moved from.
    [[nodiscard]] bool is_open() const noexcept;

private:
    friend detail::stream_access;
    [[nodiscard]] detail::duplex_whole read_exact_operation(mutable_buffer into) noexcept;
    [[nodiscard]] detail::duplex_whole write_all_operation(const_buffer from,
                                                           write_options options) noexcept;
    [[nodiscard]] detail::duplex_whole write_all_operation(std::span<const const_buffer> from,
                                                           write_options options) noexcept;

    friend std::pair<duplex_stream, duplex_stream> duplex(std::size_t capacity_bytes);
    duplex_stream(detail::duplex_link& link, unsigned side) noexcept
        : link_{&link}
        , side_{side} {}

    [[nodiscard]] detail::duplex_pipe* incoming() const noexcept;
    [[nodiscard]] detail::duplex_pipe* outgoing() const noexcept;
    void drop() noexcept;

    detail::duplex_link* link_; // shared by the two ends; null only after a move
    unsigned side_;             // 0 or 1
};

/// Two streams, each of which reads what the other one writes.
///
/// @pre `capacity_bytes` is at least 1.
/// @param capacity_bytes  Capacity of each direction; a write of more waits until the other end has
///                        read. Both are allocated here; throws std::bad_alloc.
///
/// @par Example
/// @snippet testing.cpp duplex
[[nodiscard]] std::pair<duplex_stream, duplex_stream>
duplex(std::size_t capacity_bytes = std::size_t{64} * 1024);

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
