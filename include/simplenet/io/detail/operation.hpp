#pragma once
// operation: one I/O in progress, as data that both backends interpret. Layer io, private.
// It lies in the awaitable, so in the coroutine frame: no allocation, no map, no second owner.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/task.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace simplenet::v0::detail {
// The library's own: not exported, since it is first named here.
struct socket_record;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// What an operation asks for. Two places read it: a backend's attempt() and, with io_uring, the
/// function that fills a submission entry.
enum class request : std::uint8_t {
    read_some,    // at least 1 byte into the buffer
    read_exact,   // all of it
    receive,      // a buffer of the pool with at least 1 byte
    accept,       // a descriptor
    perform_read, // its perform() makes the call: backends only wait until the socket is readable
    write_some,   // at least 1 byte of the buffers
    write_all,    // all of them
    write_some_more, // as write_some, with write_options::more
    write_all_more,  // as write_all, with write_options::more
    connect,         // the end of connecting
    perform_write,   // as perform_read, until the socket is writable
};

[[nodiscard]] constexpr bool is_read(request kind) noexcept {
    return kind <= request::perform_read;
}

/// A write of bytes; if there is one buffer, it is a send(2).
[[nodiscard]] constexpr bool is_send(request kind) noexcept {
    return kind >= request::write_some && kind <= request::write_all_more;
}

/// A write that is over when it has moved a byte.
[[nodiscard]] constexpr bool is_partial_write(request kind) noexcept {
    return kind == request::write_some || kind == request::write_some_more;
}

/// More bytes follow this write: write_options::more.
[[nodiscard]] constexpr bool has_more(request kind) noexcept {
    return kind == request::write_some_more || kind == request::write_all_more;
}

/// Base of every I/O awaitable.
///
/// Invariant: while waiting, sleeping or queued it is the reader or writer of its record, and the
/// `current` of its scope; while `kernel_references` is not 0 the kernel knows its address or its
/// buffer. In both cases neither the operation nor the buffer may be moved or destroyed.
class operation : public suspension {
public:
    using is_leaf = void; // see with_timeout()

    operation& operator=(operation&&) = delete;

    void run() noexcept override;
    void on_stop(stop_reason reason) noexcept final;
    void describe(std::string& text) final;
    /// The socket's descriptor; -1: it is closed. @pre not moved from.
    [[nodiscard]] int native_handle() const noexcept;
    /// The name of the awaited function, for people.
    [[nodiscard]] virtual const char* name() const noexcept;

    /// One attempt of the kinds perform_read and perform_write, without waiting. True: the
    /// operation is over and has its outcome. False: it would block, and `readable` or `writable`
    /// of the record is cleared; or it has done its share of the turn; or its phase is `sleeping`,
    /// and its own timer will wake it.
    virtual bool perform() noexcept;

    // idle       constructed, or over: nothing else refers to it
    // waiting    the backend attempts it at the next event
    // in_kernel  the kernel works on it, and completes it
    // sleeping   its own timer wakes it: events do not, and the kernel does not know it
    // queued     on the ready list, to be attempted when its turn comes
    // finished   on the ready list with its outcome
    enum class state : std::uint8_t { idle, waiting, in_kernel, sleeping, queued, finished };

    // Read by the backends. Members without an initialiser are set only when they are needed: every
    // read and write constructs an operation, and most of them end at once.
    socket_record* record; // borrowed: a socket's record outlives its operations

    // These four are initialised by one store.
    request kind;
    state phase = state::idle;
    stop_reason stopped = stop_reason::none; // a stop that waits for the kernel's verdict
    std::uint8_t kernel_references = 0;      // entries that refer to this: its own, and a cancel

    int error;                 // 0, an errno, or a negated errc; set by start
    std::size_t moved;         // so far: bytes, or datagrams of a batch; set by start
    std::byte* data = nullptr; // of the one buffer
    std::size_t size = 0;      // bytes to move at most: of the buffer, a file or a pipe
    int outcome;               // io_uring: the result of its own entry

    [[nodiscard]] std::error_code code() const noexcept;

protected:
    operation(socket_record* of, request what) noexcept
        : record{of}
        , kind{what} {}
    operation(socket_record* of, request what, void* bytes, std::size_t count) noexcept
        : record{of}
        , kind{what}
        , data{static_cast<std::byte*>(bytes)}
        , size{count} {}
    // Only idle ones move.
    operation(operation&& other) noexcept
        : record{other.record}
        , kind{other.kind}
        , data{other.data}
        , size{other.size} {}
    ~operation() {
        // Debug only: five instructions per operation, for a bug that could only be ours.
        SIMPLENET_DEBUG_EXPECTS(phase == state::idle || phase == state::finished,
                                "a coroutine was destroyed while the kernel was using it");
    }

    // For an attempt without a coroutine. False: the socket is closed, which is the outcome. The
    // first use of a socket binds it.
    bool begin_now() noexcept;
    // A read without awaiting. False: nothing is there.
    bool read_now() noexcept;
    // False if nothing is known to be ready, or the coroutine has used its inline turns.
    bool read_ready() noexcept;

    // False: it is over already, and the coroutine continues at once.
    bool start_read(std::coroutine_handle<> caller, scope& within) noexcept;
    [[gnu::noinline]] bool start_any_read(std::coroutine_handle<> caller, scope& within) noexcept;
    [[gnu::noinline]] bool start_any_write(std::coroutine_handle<> caller, scope& within) noexcept;

    [[gnu::noinline]] void attempt_in_turn() noexcept;
    void finish_read(socket_record& of) noexcept;
    void attempted(socket_record& of, bool over, std::size_t before) noexcept;
    bool wait_for_room(socket_record& of) noexcept;
    // For the start functions: see misused().
    [[gnu::cold, gnu::noinline]] bool moved_from(std::coroutine_handle<> caller,
                                                 scope& within) noexcept;

private:
    [[gnu::cold, gnu::noinline]] bool misused_at_start() noexcept;
    bool cannot_start(scope& within) noexcept;
    void enter(operation*& slot, scope& within) noexcept;
    void queue_up(operation*& slot, scope& within) noexcept;
    void wait(socket_record& of) noexcept;
    bool attempt_read(socket_record& of) noexcept;
    bool attempt_write(socket_record& of) noexcept;
    [[nodiscard]] bool can_go_on(const socket_record& of) const noexcept;
};

/// A write of the bytes of one or several buffers.
class write_operation : public operation {
public:
    // Set if there are several; else `buffers` is null.
    std::uint32_t buffer_count; // not completely written yet
    const const_buffer* buffers = nullptr;
    std::size_t skip; // bytes of the first one that are written

protected:
    write_operation(socket_record* of, request what, const_buffer from) noexcept
        // The bytes are only read, so casting const away is safe.
        : operation{of, what, const_cast<std::byte*>(from.data()), from.size()} {}
    write_operation(socket_record* of, request what, std::span<const const_buffer> from) noexcept
        : operation{of, what}
        , buffer_count{static_cast<std::uint32_t>(from.size())}
        , buffers{from.data()}
        , skip{0} {
        SIMPLENET_EXPECTS(from.size() == buffer_count, "a write of more than 4294967295 buffers");
    }
    write_operation(write_operation&& other) noexcept
        : operation{static_cast<operation&&>(other)} // not std::move(): the rest is still there
        , buffer_count{other.buffer_count}
        , buffers{other.buffers}
        , skip{0} {}
    ~write_operation() = default;

    bool start_send(std::coroutine_handle<> caller, scope& within) noexcept;
    // An attempt without awaiting. False: there is no room.
    bool write_now() noexcept;

private:
    [[gnu::noinline]] bool go_on_writing(std::ptrdiff_t count) noexcept;
};

/// How an operation starts: `sends` is a write of bytes, which one send(2) may complete.
enum class starts : std::uint8_t { reads, writes, sends };

/// The base class of an operation that starts so.
template <starts how>
using operation_that = std::conditional_t<how == starts::sends, write_operation, operation>;

/// The await_ready and await_suspend of an operation.
template <starts how>
class awaitable_operation : public operation_that<how>,
                            public awaited_from_outside<awaitable_operation<how>> {
public:
    // The first attempt is made in await_suspend: the caller's scope is known only there, and a
    // stopped coroutine must not continue to read from a busy peer.
    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<awaitable_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        const bool waits = start(caller, innermost_scope(caller));
        if (waits) note_site(caller, at); // most operations do not wait
        return waits;
    }
    /// The same for a caller whose type is not known.
    bool start(std::coroutine_handle<> caller, scope& within) noexcept {
        if constexpr (how == starts::reads) {
            return this->start_read(caller, within);
        } else if constexpr (how == starts::sends) {
            // Usually known to the compiler, so that a write without options pays nothing.
            if (has_more(this->kind)) return this->start_any_write(caller, within);
            return this->start_send(caller, within);
        } else {
            return this->start_any_write(caller, within);
        }
    }

protected:
    using operation_that<how>::operation_that;
};

template <starts how>
class some_operation : public awaitable_operation<how> {
public:
    result<std::size_t> await_resume() const noexcept {
        if (this->error != 0) return fail(this->code());
        return this->moved;
    }

protected:
    using awaitable_operation<how>::awaitable_operation;
};

template <starts how>
class whole_operation : public awaitable_operation<how> {
public:
    transfer_result await_resume() const noexcept {
        if (this->error != 0) return std::unexpected{transfer_error{this->code(), this->moved}};
        return this->moved;
    }

protected:
    using awaitable_operation<how>::awaitable_operation;
};

/// Awaitable of read_some().
class [[nodiscard]] read_some_operation final : public some_operation<starts::reads> {
public:
    /// @pre `into` is not empty: a read of 0 bytes would look like the end of the stream.
    read_some_operation(socket_record* of, mutable_buffer into) noexcept
        : some_operation{of, request::read_some, into.data(), into.size()} {
        SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
    }

    /// Instead of awaiting it: returns bytes that are there already, or operation_would_block.
    result<std::size_t> if_ready() noexcept {
        if (!read_ready()) return fail(std::errc::operation_would_block);
        return await_resume();
    }

    void run() noexcept override;
};

/// Awaitable of write_some().
class [[nodiscard]] write_some_operation final : public some_operation<starts::sends> {
public:
    template <class Buffers>
    write_some_operation(socket_record* of, const Buffers& from, write_options options) noexcept
        : some_operation{of, options.more ? request::write_some_more : request::write_some, from} {}

    /// Instead of awaiting it: writes what there is room for, or operation_would_block.
    result<std::size_t> now() noexcept {
        if (!write_now()) return fail(std::errc::operation_would_block);
        return await_resume();
    }
};

/// Awaitable of async_read_exact() on a stream of the runtime.
class [[nodiscard]] read_exact_operation final : public whole_operation<starts::reads>,
                                                 public awaited_from_outside<read_exact_operation> {
public:
    read_exact_operation(socket_record* of, mutable_buffer into) noexcept
        : whole_operation{of, request::read_exact, into.data(), into.size()} {}

    using awaited_from_outside<read_exact_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        const bool waits = start(caller, innermost_scope(caller));
        if (waits) note_site(caller, at);
        return waits;
    }
    bool start(std::coroutine_handle<> caller, scope& within) noexcept {
        // A read of 0 bytes must not wait, but still reports misuse and a stop.
        return this->size == 0 ? start_any_read(caller, within) : start_read(caller, within);
    }
};

/// Awaitable of async_write_all() on a stream of the runtime.
class [[nodiscard]] write_all_operation final : public whole_operation<starts::sends> {
public:
    template <class Buffers>
    write_all_operation(socket_record* of, const Buffers& from, write_options options) noexcept
        : whole_operation{of, options.more ? request::write_all_more : request::write_all, from} {}
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
