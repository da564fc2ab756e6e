#pragma once
// The operations of a tls::stream, as coroutines over its connection. Layer tls.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/detail/refusal.hpp>
#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/detail/connection.hpp>
#include <simplenet/tls/detail/engine.hpp>
#include <simplenet/tls/detail/handshake_limit.hpp>
#include <simplenet/tls/errc.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <new>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls::detail {

/// Completes the handshake. `flushes`: also sends what the peer needs for its side of it. Otherwise
/// that leaves with the first write, in one segment.
template <class S>
task<result<>> shake_hands(connection<S>& on, bool flushes) {
    enter_loop(on);
    const auto turn = co_await on.shaking.lock();
    if (!turn) co_return fail(turn);
    while (!on.is_ready()) {
        if (on.closed) co_return fail(std::errc::bad_file_descriptor);
        if (on.awaits_hello()) {
            const result<> filled = co_await fill(on);
            if (!filled) co_return fail(filled);
            continue;
        }
        if (on.limit != nullptr && on.limit->is_set() && on.has_input()) {
            const result<> taken = co_await on.limit->take();
            if (!taken) co_return fail(taken);
        }
        const engine::progress made = on.advance();
        drop_used_input(on, made == engine::progress::finished);
        switch (made) {
        case engine::progress::finished:
            break;
        case engine::progress::lacks_memory:
            co_return fail(std::errc::not_enough_memory);
        case engine::progress::failed:
            offer(on); // the alert
            co_return fail(on.failure());
        case engine::progress::needs_input:
            const result<> sent = co_await send_while(on, &engine::has_output);
            if (!sent) co_return fail(sent);
            const result<> filled = co_await fill(on);
            if (!filled) co_return fail(filled);
            break;
        }
    }
    // Nobody waits for the tickets of a server: they leave with the first write, or before the
    // first wait.
    if (flushes && on.owes_handshake()) offer(on);
    co_return result<>{};
}

template <class S>
task<result<>> handshake(connection_ref<S> keep) {
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    const result<> made = co_await shake_hands(*keep, true);
    if (!made) co_return fail(made);
    co_return co_await finish_handshake(*keep);
}

/// Bytes of output that reading may cause and leave to the next write. A peer that makes us answer
/// and does not read has to wait beyond that.
inline constexpr std::size_t most_answers = std::size_t{128} * 1024;

/// Reading has used up the input. Sends what no write has taken along: tickets, and answers to
/// KeyUpdates. Returns whether reading can go on even if some of that has not left.
template <class S>
[[nodiscard]] bool may_just_read(connection<S>& on) noexcept {
    drop_used_input(on, false);
    offer(on);
    return on.output_size() <= most_answers && !on.owes_handshake();
}

/// Lets others have their turn, or sends what the peer may wait for, and waits for more ciphertext.
template <class S>
task<result<>> fetch(connection<S>& on) {
    if (on.has_used_its_turn()) {
        on.begin_turn();
        co_await yield();
        co_return result<>{};
    }
    if (on.output_size() > most_answers) {
        const auto alone = co_await on.writing.lock();
        if (!alone) co_return fail(alone);
        const result<> sent = co_await drain(on);
        if (!sent) co_return fail(sent);
    }
    const result<> finished = co_await finish_handshake(on);
    if (!finished) co_return fail(finished);
    if (on.closed) co_return fail(std::errc::bad_file_descriptor);
    co_return co_await fill(on);
}

template <class S>
task<result<>> more_input(connection<S>& on, bool may_read) {
    return may_read ? fill(on) : fetch(on);
}

/// Ends a read of application data, or of an error.
template <class S>
void end_read(connection<S>& on, bool has_read) noexcept {
    if (has_read) note_movement(on);
    drop_used_input(on, has_read);
    if (!has_read) offer(on); // an alert
}

[[nodiscard]] inline bool was_stopped(std::error_code error) noexcept {
    return error == std::errc::operation_canceled || error == simplenet::errc::deadline_exceeded;
}

/// Whether a write was stopped or lacked memory: the transport is as it was, and may be used again.
[[nodiscard]] inline bool may_be_repeated(std::error_code error) noexcept {
    return was_stopped(error) || error == std::errc::not_enough_memory ||
           error == std::errc::no_buffer_space;
}

/// Reads by `take`, which fails with operation_would_block as long as it needs more input.
// The usual wait is in this coroutine: each further frame costs an idle connection some hundred
// bytes.
template <class S, class Take>
auto read_by(connection_ref<S> keep, Take take)
    -> task<std::invoke_result_t<Take&, connection<S>&>> {
    connection<S>& on = *keep;
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    if (on.closed) co_return fail(std::errc::bad_file_descriptor);
    const in_flight read{on, &connection<S>::reads, second_read};
    if (on.met_by_readable) co_return take.failed(on, std::exchange(on.met_by_readable, {}));
    result<> there;
    if (!on.is_ready()) there = co_await shake_hands(on, true);
    while (there) {
        if (on.closed) co_return fail(std::errc::bad_file_descriptor);
        const bool rests = on.has_used_its_turn();
        if (!rests) {
            auto taken = take(on);
            if (taken || taken.error() != std::errc::operation_would_block) co_return taken;
        }
        const bool may_read = !rests && may_just_read(on);
        if (may_read && on.in_bulk) {
            there = fill_in_bulk(on);
            if (there || there.error() != std::errc::operation_would_block) continue;
        }
        if (!may_read || on.idle_limit.count() > 0) {
            there = co_await more_input(on, may_read);
            continue;
        }
        const mutable_buffer into = place_for_input(on);
        auto more = co_await read_input(on, into);
        there = take_input(on, into, std::move(more));
    }
    co_return take.failed(on, there.error());
}

struct taken_into {
    template <class S>
    result<std::size_t> operator()(connection<S>& on) const noexcept {
        const result<std::size_t> count = on.decrypt(memory);
        if (count || count.error() != std::errc::operation_would_block)
            end_read(on, count.has_value());
        return count;
    }
    template <class S>
    static result<std::size_t> failed(connection<S>&, std::error_code error) noexcept {
        return fail(error);
    }

    mutable_buffer memory;
};

struct taken_as_lease {
    template <class S>
    result<received> operator()(connection<S>& on) const noexcept {
        if (!on.has_decrypted()) return fail(std::errc::operation_would_block);
        result<received> lease = on.take();
        end_read(on, lease.has_value());
        return lease;
    }
    template <class S>
    static result<received> failed(connection<S>&, std::error_code error) noexcept {
        return fail(error);
    }
};

struct left_there {
    template <class S>
    result<> operator()(connection<S>& on) const noexcept {
        if (!on.has_decrypted()) return fail(std::errc::operation_would_block);
        return {};
    }
    /// The read that follows reports any failure but a stop: the transport may report it only once.
    template <class S>
    static result<> failed(connection<S>& on, std::error_code error) noexcept {
        if (was_stopped(error)) return fail(error);
        on.met_by_readable = error;
        return {};
    }
};

template <class S>
task<result<std::size_t>> read_some(connection_ref<S> keep, mutable_buffer into) {
    return read_by(std::move(keep), taken_into{into});
}

template <class S>
task<result<received>> receive(connection_ref<S> keep) {
    return read_by(std::move(keep), taken_as_lease{});
}

template <class S>
task<result<>> readable(connection_ref<S> keep) {
    return read_by(std::move(keep), left_there{});
}

template <class S>
result<received> try_receive(connection<S>& on) {
    const in_flight read{on, &connection<S>::reads, second_read};
    if (on.met_by_readable && !on.closed) return fail(std::exchange(on.met_by_readable, {}));
    if (!on.is_ready()) return fail(std::errc::operation_would_block);
    on.begin_turn();
    for (;;) {
        if (on.closed) return fail(std::errc::bad_file_descriptor);
        result<received> taken = taken_as_lease{}(on);
        if (taken || taken.error() != std::errc::operation_would_block) return taken;
        drop_used_input(on, false);
        offer(on);
        if (on.output_size() > most_answers) return fail(std::errc::operation_would_block);
        const result<> more = fill_from_ready(on);
        if (!more) return fail(more);
    }
}

[[nodiscard]] inline std::span<const const_buffer> as_span(const const_buffer& one) noexcept {
    return {&one, 1};
}
[[nodiscard]] inline std::span<const const_buffer>
as_span(std::span<const const_buffer> several) noexcept {
    return several;
}

template <class S, class Buffers>
task<result<std::size_t>> write_some(connection_ref<S> keep, Buffers from, write_options options) {
    connection<S>& on = *keep;
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    if (on.closed) co_return fail(std::errc::bad_file_descriptor);
    const in_flight write{on, &connection<S>::writes, second_write};
    if (!on.is_ready()) {
        const result<> made = co_await shake_hands(on, false);
        if (!made) co_return fail(made);
    }
    const auto alone = co_await on.writing.lock();
    if (!alone) co_return fail(alone);
    if (on.stalled) { // the rest of an earlier write
        const result<> sent = co_await drain(on);
        if (!sent) co_return fail(sent);
        on.stalled = false;
    }
    if (on.closed) co_return fail(std::errc::bad_file_descriptor);
    const result<std::size_t> count = seal(on, as_span(from), options);
    if (!count || !on.has_output()) co_return count;
    result<> sent;
    try {
        sent = co_await drain(on, options);
    } catch (const std::bad_alloc&) {
        sent = fail(std::errc::not_enough_memory);
    }
    if (sent) co_return count;
    if (on.closed || !may_be_repeated(sent.error())) co_return fail(sent);
    on.stalled = true; // sealed bytes cannot be taken back
    co_return count;
}

template <class S>
result<std::size_t> try_write_some(connection<S>& on, std::span<const const_buffer> from) {
    const in_flight write{on, &connection<S>::writes, second_write};
    if (on.closed) return fail(std::errc::bad_file_descriptor);
    offer(on);
    const bool waits = !on.is_ready() || on.writing.locked() || on.has_output();
    if (waits && !on.failure()) return fail(std::errc::operation_would_block);
    const result<std::size_t> count = seal(on, from, {});
    if (count) offer(on);
    on.stalled = on.has_output();
    return count;
}

template <class S>
task<result<>> shutdown_write(connection_ref<S> keep) {
    connection<S>& on = *keep;
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    if (on.closed) co_return fail(std::errc::bad_file_descriptor);
    const in_flight write{on, &connection<S>::writes, second_write};
    if (!on.is_ready()) {
        const result<> made = co_await shake_hands(on, false);
        if (!made) co_return fail(made);
    }
    const auto alone = co_await on.writing.lock();
    if (!alone) co_return fail(alone);
    if (on.closed) co_return fail(std::errc::bad_file_descriptor);
    const result<> ended = on.finish();
    if (!ended) co_return fail(ended);
    co_return co_await drain(on);
}

/// Exchanges close_notify. What the peer still sends is dropped.
template <class S>
task<result<>> say_goodbye(connection_ref<S> keep) {
    const result<> ended = co_await shutdown_write(keep);
    if (!ended) co_return fail(ended);
    std::array<std::byte, 1024> dropped; // NOLINT(*-member-init): written before it is read
    for (;;) {
        const result<std::size_t> count = co_await read_some(keep, dropped);
        if (count) continue;
        if (count.error() == simplenet::errc::end_of_stream) co_return result<>{};
        co_return fail(count);
    }
}

/// Closes at once. Sends nothing unless the loop of the stream runs: it may have ended.
template <class S>
void close(connection<S>& on) noexcept {
    if (std::exchange(on.closed, true)) return;
    const void* const here = simplenet::detail::run_queue::current();
    const bool runs = here != nullptr && on.loop == here;
    if (runs && on.is_ready() && !on.writing.locked()) {
        static_cast<void>(on.finish());
        offer(on);
    }
    if constexpr (requires(S& over) { over.close(); }) on.transport.close();
}

template <class S>
task<result<>> close_within(connection_ref<S> keep, std::chrono::nanoseconds grace) {
    struct closes {
        connection<S>& on;
        ~closes() { close(on); }
    } const at_end{*keep};
    co_return co_await with_timeout(say_goodbye(keep), grace);
}

} // namespace simplenet::v0::tls::detail

#pragma GCC visibility pop
