#pragma once
// connection: a transport with TLS over it, and the coroutines that move ciphertext between the
// two. Layer tls.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/sync/async_mutex.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/detail/engine.hpp>
#include <simplenet/tls/detail/handshake_limit.hpp>
#include <simplenet/tls/errc.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <new>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls::detail {

/// A stream that lends buffers of the loop's pool, so that an idle connection needs none.
template <class S>
concept lends = requires(S& stream) {
    { stream.receive() } -> simplenet::detail::awaitable;
    requires std::same_as<simplenet::detail::await_result<decltype(stream.receive())>,
                          result<received>>;
};

/// Memory for ciphertext of a transport that does not lend: a few bytes while the connection is
/// idle, and a buffer from the middle of a record on.
class input_memory {
public:
    /// Where to read into. Throws std::bad_alloc.
    [[nodiscard]] mutable_buffer next() {
        if (!in_record_) return head_;
        if (rest_.size() == 0) rest_ = scratch::borrow(most);
        return rest_;
    }
    /// Bytes were read into next().
    void filled() noexcept { in_record_ = true; }
    /// Takes bytes that were read without next().
    void hold(received&& bytes) noexcept {
        lease_ = std::move(bytes);
        in_record_ = true;
    }
    /// The bytes are used up; `record_ended` also ends the record that they were in.
    void drop(bool record_ended) noexcept {
        lease_.release();
        if (!record_ended) return;
        in_record_ = false;
        rest_.release();
    }

private:
    static constexpr std::size_t most = std::size_t{16} * 1024;

    std::array<std::byte, 5> head_; // as large as the header of a record
    bool in_record_ = false;
    scratch rest_;
    received lease_;
};

/// Bytes in the send buffer of a socket, see tcp(7) and SIOCOUTQ; 0 if it has none.
[[nodiscard]] std::size_t unacknowledged(int socket) noexcept;

template <class S>
[[nodiscard]] std::size_t unacknowledged_by_peer(const S& transport) noexcept {
    if constexpr (requires { transport.native_handle(); }) {
        return unacknowledged(transport.native_handle());
    } else {
        return 0;
    }
}

template <class S>
using input_of = std::conditional_t<lends<S>, received, input_memory>;

/// A transport with TLS over it. Owned by the stream and by each operation on it.
template <class S>
struct connection : engine {
    connection(S&& over, const context& with, const stream_options& options)
        : engine{with, options}
        , transport{std::move(over)} {}

    S transport;
    input_of<S> input; // the memory behind set_input()
    async_mutex shaking;
    async_mutex writing;              // its holder sends all output, or fails, before it unlocks
    handshake_limit* limit = nullptr; // of a server; borrowed
    std::chrono::nanoseconds idle_limit{0};
    std::chrono::steady_clock::time_point moved{}; // the last application data; with idle_limit
    std::error_code met_by_readable;               // an error that the next read reports
    const void* loop = nullptr;                    // the one that used it first
    bool reads = false;                            // an operation is in flight
    bool writes = false;
    bool closed = false;
    bool stalled = false; // the output is the rest of a write that was stopped
    bool in_bulk = false; // the last input filled a buffer of the loop's pool: there may be more
    unsigned owners = 1;
};

/// An operation begins on this thread. Ends a program that uses a stream on two loops.
template <class S>
void enter_loop(connection<S>& on) noexcept {
    const void* const here = simplenet::detail::run_queue::current();
    SIMPLENET_EXPECTS(on.loop == nullptr || on.loop == here,
                      "a tls::stream belongs to the loop that used it first");
    on.loop = here;
}

/// A read or a write, as long as it is in flight.
class in_flight {
public:
    /// `message` ends a program that starts a second one.
    template <class S>
    in_flight(connection<S>& on, bool connection<S>::* kind, const char* message) noexcept
        : is_{on.*kind} {
        SIMPLENET_EXPECTS(!is_, message);
        enter_loop(on);
        is_ = true;
    }
    in_flight(const in_flight&) = delete;
    in_flight& operator=(const in_flight&) = delete;
    ~in_flight() { is_ = false; }

private:
    bool& is_;
};
inline constexpr const char* second_read = "a second read on a tls::stream that has one in flight";
inline constexpr const char* second_write =
    "a second write or shutdown_write() on a tls::stream that has one in flight";

/// One of the owners of a connection.
template <class S>
class connection_ref {
public:
    explicit connection_ref(connection<S>& of) noexcept
        : of_{&of} {
        ++of_->owners;
    }
    connection_ref(const connection_ref& other) noexcept
        : connection_ref{*other.of_} {}
    connection_ref(connection_ref&& other) noexcept
        : of_{std::exchange(other.of_, nullptr)} {}
    connection_ref& operator=(const connection_ref&) = delete;
    ~connection_ref() { drop(of_); }

    connection<S>& operator*() const noexcept { return *of_; }

    static void drop(connection<S>* of) noexcept {
        if (of != nullptr && --of->owners == 0) delete of;
    }

private:
    connection<S>* of_; // null after a move
};

/// Gives the memory of the input back once it is used up.
template <class S>
void drop_used_input(connection<S>& on, bool record_ended) noexcept {
    if (on.has_input()) return;
    if constexpr (lends<S>) {
        on.input.release();
    } else {
        on.input.drop(record_ended);
    }
}

/// Application data has moved.
template <class S>
void note_movement(connection<S>& on) noexcept {
    if (on.idle_limit.count() > 0) on.moved = std::chrono::steady_clock::now();
}

/// The time at which an operation that began at `start` fails if nothing moves.
template <class S>
[[nodiscard]] std::chrono::steady_clock::time_point
idle_deadline(const connection<S>& on, std::chrono::steady_clock::time_point start) noexcept {
    constexpr auto never = std::chrono::steady_clock::time_point::max();
    const auto since = std::max(start, on.moved);
    const bool is_limited = on.idle_limit.count() > 0 && on.idle_limit < never - since;
    return is_limited ? since + on.idle_limit : never;
}

/// After an idle deadline: whether the operation continues, because data has moved meanwhile.
template <class S>
task<bool> goes_on(const connection<S>& on, std::error_code ended_by,
                   std::chrono::steady_clock::time_point start) {
    if (ended_by != simplenet::errc::deadline_exceeded) co_return false;
    if (std::chrono::steady_clock::now() >= idle_deadline(on, start)) co_return false;
    const bool by_caller = co_await this_task::stop_requested();
    co_return !by_caller;
}

/// Reads ciphertext: into a lease, or into `into`.
template <class S>
[[nodiscard]] auto read_input(connection<S>& on, [[maybe_unused]] mutable_buffer into) {
    if constexpr (lends<S>) {
        return on.transport.receive();
    } else {
        return on.transport.read_some(into);
    }
}

/// Sends output while `remains`. @pre the caller holds `writing`, or nobody else can write yet.
template <class S>
task<result<>> send_while(connection<S>& on, bool (engine::*remains)() const noexcept,
                          write_options options = {}) {
    auto start = std::chrono::steady_clock::time_point{};
    if (on.idle_limit.count() > 0) start = std::chrono::steady_clock::now();
    std::size_t unread = 0; // by the peer
    while ((on.*remains)()) {
        result<std::size_t> count = 0;
        {
            const engine::lent_output lent{on};
            if (on.idle_limit.count() <= 0) {
                count = co_await simplenet::detail::write_some_with(on.transport, lent.bytes(),
                                                                    options);
            } else {
                count = co_await with_deadline(
                    simplenet::detail::write_some_with(on.transport, lent.bytes(), options),
                    idle_deadline(on, start));
            }
        }
        if (count) {
            on.sent(*count);
            note_movement(on);
            continue;
        }
        if (on.idle_limit.count() <= 0) co_return fail(count);
        // A peer that reads slowly is not idle, although it makes no room yet.
        const std::size_t before = std::exchange(unread, unacknowledged_by_peer(on.transport));
        if (unread != before) note_movement(on);
        const bool again = co_await goes_on(on, count.error(), start);
        if (!again) co_return fail(count);
    }
    co_return result<>{};
}

/// Sends all output. While the end of the handshake is part of it, also holds `shaking`. A reader
/// that waits for `shaking` then learns whether that end has left or the write was stopped.
/// @pre the caller holds `writing`.
template <class S>
task<result<>> drain(connection<S>& on, write_options options = {}) {
    if (on.owes_handshake()) {
        const auto turn = co_await on.shaking.lock();
        if (!turn) co_return fail(turn);
        const result<> sent = co_await send_while(on, &engine::owes_handshake, options);
        if (!sent) co_return fail(sent);
    }
    co_return co_await send_while(on, &engine::has_output, options);
}

/// Returns when the end of the handshake has left. Sends it if no writer does.
template <class S>
task<result<>> finish_handshake(connection<S>& on) {
    while (on.owes_handshake()) {
        const auto turn = co_await on.shaking.lock();
        if (!turn) co_return fail(turn);
        if (const auto alone = on.writing.try_lock()) {
            const result<> sent = co_await send_while(on, &engine::owes_handshake);
            if (!sent) co_return fail(sent);
        } else { // a writer waits for its turn, or will
            co_await yield();
        }
    }
    co_return result<>{};
}

/// Whether a transport can be asked to send while OpenSSL seals.
template <class S>
concept sends_at_once = ready_writer<S> && requires(S& to, std::span<const const_buffer> parts) {
    { to.try_write_some(parts) } noexcept;
};

/// Gives the output and then a record to the transport. Returns how many bytes it took.
template <class S>
std::size_t send_at_once(engine& of, const_buffer output, const_buffer record) noexcept {
    auto& on = static_cast<connection<S>&>(of);
    const std::array<const_buffer, 2> both{output, record};
    const result<std::size_t> count =
        output.empty() ? on.transport.try_write_some(record)
                       : on.transport.try_write_some(std::span<const const_buffer>{both});
    if (count) note_movement(on);
    return count.value_or(0);
}

/// Seals `from`, and sends at once what it may. The rest is output.
template <class S>
[[nodiscard]] result<std::size_t> seal(connection<S>& on, std::span<const const_buffer> from,
                                       write_options options) {
    if constexpr (sends_at_once<S>) {
        if (!options.more && !on.owes_handshake()) {
            simplenet::detail::run_queue::require_current().spend_inline_turns(1);
            return on.encrypt(from, &send_at_once<S>);
        }
    }
    return on.encrypt(from, nullptr);
}

/// Sends what the transport takes now, unless a write is in flight. The holder of `writing` sends
/// the rest.
template <class S>
void offer(connection<S>& on) noexcept {
    if constexpr (ready_writer<S>) {
        try {
            while (on.has_output() && !on.writing.locked() && !on.is_output_lent()) {
                const result<std::size_t> count = on.transport.try_write_some(on.output());
                if (!count) return;
                on.sent(*count);
            }
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): of TLS inside TLS
        }
    }
}

/// The transport's end, or its error.
template <class S>
[[nodiscard]] std::error_code input_failed(connection<S>& on, std::error_code error) noexcept {
    if (error != simplenet::errc::end_of_stream) return error;
    on.input_ended();
    return on.failure();
}

/// Ciphertext has arrived in a lease, or in `into`.
template <class S, class Read>
[[nodiscard]] result<> take_input(connection<S>& on, [[maybe_unused]] mutable_buffer into,
                                  Read more) {
    if (!more) return fail(input_failed(on, more.error()));
    if constexpr (lends<S>) {
        on.input = *std::move(more);
        on.in_bulk = on.input.size() >= std::size_t{16} * 1024;
        on.set_input(on.input.data(), on.input.size());
    } else {
        on.input.filled();
        on.set_input(into.data(), *more);
    }
    return {};
}

/// Where read_input() puts ciphertext of a transport that does not lend.
template <class S>
[[nodiscard]] mutable_buffer place_for_input([[maybe_unused]] connection<S>& on) {
    if constexpr (lends<S>) {
        return {};
    } else {
        return on.input.next();
    }
}

/// Reads more of a long transfer, up to 64 KiB at once: a buffer of the loop's pool is shorter than
/// a record. operation_would_block: nothing more is known to be there.
/// @pre connection::in_bulk.
template <class S>
[[nodiscard]] result<> fill_in_bulk([[maybe_unused]] connection<S>& on) {
    using simplenet::detail::stream_access;
    if constexpr (lends<S> && requires { stream_access::is_read_directly(on.transport); }) {
        if (!stream_access::is_read_directly(on.transport))
            return fail(std::errc::operation_would_block);
        constexpr std::size_t size = std::size_t{64} * 1024 - simplenet::detail::lease_overhead;
        std::byte* const memory = simplenet::detail::allocate_lease(size);
        if (memory == nullptr) return fail(std::errc::operation_would_block);
        received lease{memory, size};
        const result<std::size_t> count = stream_access::read_ready(on.transport, {memory, size});
        if (count) return take_input(on, {}, result<received>{lease.split(*count)});
        if (count.error() == std::errc::operation_would_block) return fail(count);
        return fail(input_failed(on, count.error()));
    } else {
        return fail(std::errc::operation_would_block);
    }
}

template <class S>
task<result<>> fill_without_limit(connection<S>& on) {
    const mutable_buffer into = place_for_input(on);
    auto more = co_await read_input(on, into);
    co_return take_input(on, into, std::move(more));
}

template <class S>
task<result<>> fill_within_limit(connection<S>& on) {
    const mutable_buffer into = place_for_input(on);
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
        auto more = co_await with_deadline(read_input(on, into), idle_deadline(on, start));
        if (more) co_return take_input(on, into, std::move(more));
        const bool again = co_await goes_on(on, more.error(), start);
        if (!again) co_return fail(input_failed(on, more.error()));
    }
}

/// Waits for ciphertext. @pre has_input() is false.
template <class S>
task<result<>> fill(connection<S>& on) {
    return on.idle_limit.count() > 0 ? fill_within_limit(on) : fill_without_limit(on);
}

/// Takes ciphertext that is there already. @pre has_input() is false.
template <class S>
    requires ready_reader<S>
[[nodiscard]] result<> fill_from_ready(connection<S>& on) {
    result<received> more = on.transport.try_receive();
    if (!more) return fail(input_failed(on, more.error()));
    on.set_input(more->data(), more->size());
    if constexpr (lends<S>) {
        on.input = *std::move(more);
    } else {
        on.input.hold(*std::move(more));
    }
    return {};
}

} // namespace simplenet::v0::tls::detail

#pragma GCC visibility pop
