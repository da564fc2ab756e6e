#pragma once
// operation: one I/O in progress, as data that both backends interpret. Layer runtime, private.
// Lives in the awaitable, so in the coroutine frame: no allocation, no map, no second owner.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

namespace simplenet::detail {

struct io_record;

/// What an operation asks for. Two places read it: a backend's attempt() and, with io_uring, the
/// function that fills a submission entry.
enum class request : std::uint8_t {
    read_some,  // at least 1 byte into the buffer
    read_exact, // all of it
    receive,    // a buffer of the pool with at least 1 byte
    accept,     // a descriptor
    write_some, // at least 1 byte of the buffers
    write_all,  // all of them
    connect,    // the end of connecting
};

[[nodiscard]] constexpr bool is_read(request kind) noexcept {
    return kind <= request::accept;
}
[[nodiscard]] constexpr bool is_write(request kind) noexcept {
    return kind == request::write_some || kind == request::write_all;
}

/// Base of every I/O awaitable.
///
/// Invariant: while waiting or queued it is the reader or writer of its record, and the `current`
/// of its scope; while `kernel_references` is not 0 the kernel knows its address or its buffer. In
/// both cases neither it nor the buffer may move or die.
class operation : public suspension {
public:
    operation& operator=(operation&&) = delete;

    void run() noexcept final;
    void on_stop(stop_reason reason) noexcept final;

    // What is asked for. Read by the backends.
    request kind;
    std::byte* data = nullptr;             // of the one buffer
    const const_buffer* buffers = nullptr; // of a vectored write: the buffer that is next
    std::size_t size = 0;                  // bytes of the one buffer, or buffers from `buffers`
    std::size_t skip = 0;                  // bytes of `*buffers` that have moved already
    std::size_t moved = 0;                 // bytes so far
    // receive: the buffer's number in the pool. accept: the descriptor, held while `moved` is 1.
    std::uint32_t lease = 0;

    // idle      constructed, or over: nobody else knows it
    // waiting   the backend completes it when something happens
    // queued    on the ready list, to be attempted when its turn comes
    // finished  on the ready list with its outcome
    enum class state : std::uint8_t { idle, waiting, queued, finished };
    state phase = state::idle;
    stop_reason stopped = stop_reason::none; // a stop that waits for the kernel's verdict
    std::uint8_t kernel_references = 0;      // entries that name this: its own, and a cancel
    int error = 0;                           // 0, an errno, or a negated errc
    int outcome = 0;                         // io_uring: what its own entry came back with

    io_record* record; // borrowed: a socket's record outlives its operations

    [[nodiscard]] std::error_code code() const noexcept;

protected:
    operation(io_record* of, request what) noexcept
        : kind{what}
        , record{of} {}
    operation(operation&& other) noexcept
        : kind{other.kind}
        , data{other.data}
        , buffers{other.buffers}
        , size{other.size}
        , record{other.record} {}
    ~operation() {
        SIMPLENET_EXPECTS(phase == state::idle || phase == state::finished,
                          "a coroutine was destroyed while the kernel worked for it");
    }

    /// False: it is over already, and the coroutine goes on at once.
    bool start(std::coroutine_handle<> caller, scope& within) noexcept;

private:
    bool refuse(int why, scope& within) noexcept;
    void wait_or_finish() noexcept;
};

/// The await_ready and await_suspend of an operation.
class awaitable_operation : public operation {
public:
    // The first attempt is made in await_suspend: only there is the caller's scope known, and a
    // stopped coroutine must not go on reading from a busy peer.
    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
        return start(caller, scope_of(caller));
    }

protected:
    using operation::operation;
};

/// Awaitable of the reads and writes that say how many bytes moved.
class [[nodiscard]] some_operation final : public awaitable_operation {
public:
    /// @pre `into` is not empty: a read of 0 bytes would look like the end of the stream.
    some_operation(io_record* of, mutable_buffer into) noexcept
        : awaitable_operation{of, request::read_some} {
        SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
        data = into.data();
        size = into.size();
    }
    some_operation(io_record* of, const_buffer from) noexcept
        : awaitable_operation{of, request::write_some} {
        data = const_cast<std::byte*>(from.data()); // a write only reads it
        size = from.size();
    }
    some_operation(io_record* of, std::span<const const_buffer> from) noexcept
        : awaitable_operation{of, request::write_some} {
        buffers = from.data();
        size = from.size();
    }

    result<std::size_t> await_resume() const noexcept {
        if (error != 0) return fail(code());
        return moved;
    }
};

/// Awaitable of the reads and writes of everything.
class [[nodiscard]] whole_operation final : public awaitable_operation {
public:
    whole_operation(io_record* of, mutable_buffer into) noexcept
        : awaitable_operation{of, request::read_exact} {
        data = into.data();
        size = into.size();
    }
    whole_operation(io_record* of, const_buffer from) noexcept
        : awaitable_operation{of, request::write_all} {
        data = const_cast<std::byte*>(from.data()); // a write only reads it
        size = from.size();
    }
    whole_operation(io_record* of, std::span<const const_buffer> from) noexcept
        : awaitable_operation{of, request::write_all} {
        buffers = from.data();
        size = from.size();
    }

    transfer_result await_resume() const noexcept {
        if (error != 0) return std::unexpected{transfer_error{code(), moved}};
        return moved;
    }
};

} // namespace simplenet::detail
