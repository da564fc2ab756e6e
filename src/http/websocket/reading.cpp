#include "http/websocket/connection.hpp"
#include "http/websocket/operations.hpp"
#include "http/websocket/watch.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/detail/refusal.hpp>
#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/io/received.hpp>

#include <utility>

namespace simplenet::v0::http::detail {

// Types in the frames of coroutines that other sources call are not in an anonymous namespace: in a
// unity build GCC warns of them.

/// A read, as long as it is in flight.
class reader_turn {
public:
    explicit reader_turn(websocket_connection& on) noexcept
        : on_{on} {
        SIMPLENET_EXPECTS(!on.reads, "a second read_message() on a websocket with one in flight");
        on.reads = true;
    }
    reader_turn(const reader_turn&) = delete;
    reader_turn& operator=(const reader_turn&) = delete;
    ~reader_turn() {
        on_.reads = false;
        on_.reader_left.set();
    }

private:
    websocket_connection& on_;
};

namespace {

/// Bytes that are read at a time from a stream that lends none.
constexpr std::size_t unlent_input = std::size_t{4} * 1024;

/// What the error of a wait or of a read means. Returns the error with which the read ends; none if
/// it goes on.
std::error_code settle(websocket_connection& on, std::error_code error, woken how) noexcept {
    if (on.closed) return on.failure ? on.failure : error;
    if (is_stop(error) && how == woken::by_writer) return {};
    if (is_stop(error) && how == woken::by_timer) {
        if (on.pinged || on.close_until != never) {
            on.end(std::make_error_code(std::errc::timed_out));
            return std::make_error_code(std::errc::timed_out);
        }
        on.pinged = true;
        on.quiet_since = simplenet::detail::timed_queue::present();
        on.output.owe_ping();
        on.offer();
        return {};
    }
    if (error == std::errc::operation_not_supported && std::exchange(on.lends, false)) return {};
    // The stream has lost nothing.
    if (is_stop(error) || error == std::errc::not_enough_memory) return error;
    if (error == simplenet::errc::end_of_stream) error = errc::incomplete_message;
    on.end(error);
    return error;
}

/// Takes part in writing as long as the reader waits. Fails only by a stop.
task<result<>> send_idle_output(websocket_connection& on) {
    const auto turn = co_await on.writing.lock();
    if (!turn) co_return fail(turn);
    const result<> sent = co_await send_output(on);
    if (!sent && is_stop(sent.error()) && !on.closed) co_return fail(sent);
    co_return result<>{};
}

/// wait_for_input() beside output that no writer sends.
task<result<>> wait_for_either(websocket_connection& on) {
    if (!on.has_idle_output()) co_return co_await wait_for_input(on);
    const auto first = co_await when_any(wait_for_input(on), send_idle_output(on));
    const auto& outcome = first.index == 0 ? std::get<0>(first.values) : std::get<1>(first.values);
    co_return *outcome;
}

/// Notes a close frame. Returns the code to tell the peer if it is a wrong one, else 0.
std::uint16_t take_close(websocket_connection& on, std::string_view payload) {
    const auto parsed = parse_close_payload(payload);
    if (!parsed) return parsed.error();
    on.close_reason = parsed->reason;
    on.close_code = parsed->code;
    on.close_received = true;
    on.close_until = never;
    on.output.forget_owed();
    return 0;
}

/// Tells the peer why, and ends the connection. Returns what to report.
task<std::error_code> end_with(websocket_connection& on, std::uint16_t code) {
    const std::error_code why = code == close_codes::too_large
                                    ? make_error_code(simplenet::errc::limit_exceeded)
                                    : make_error_code(errc::websocket_protocol);
    on.failure = why;
    on.refusal_code = code;
    if (on.close_code == 0) on.close_code = close_codes::abnormal;
    static_cast<void>(co_await answer_with_close(on, code));
    co_return why;
}

} // namespace

task<result<>> wait_for_input(websocket_connection& on) {
    woken how{};
    std::error_code error;
    if (on.lends) {
        watched wait{on.stream.readable(), on, watched_for::bytes_to_come, how};
        const result<> there = co_await wait;
        if (there) co_return result<>{};
        error = there.error();
    } else {
        std::byte* const memory = simplenet::detail::allocate_lease(unlent_input);
        if (memory == nullptr) co_return fail(std::errc::not_enough_memory);
        received room{memory, unlent_input};
        watched read{on.stream.read_some({memory, unlent_input}), on, watched_for::bytes_to_come,
                     how};
        const result<std::size_t> count = co_await read;
        if (count) {
            on.take_input(room.split(*count));
            co_return result<>{};
        }
        error = count.error();
    }
    if (const std::error_code ended = settle(on, error, how)) co_return fail(ended);
    co_return result<>{};
}

// The usual wait is in this coroutine: each further frame costs an idle connection memory.
task<result<websocket::message>> read_message(websocket_ref keep, std::size_t limit, reading what) {
    websocket_connection& on = *keep;
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    if (on.closing && what == reading::for_message) {
        co_return fail(on.failure ? on.failure : make_error_code(simplenet::errc::end_of_stream));
    }
    const reader_turn turn{on};
    auto& queue = simplenet::detail::run_queue::require_current();
    for (;;) {
        if (on.failure) co_return fail(on.failure);
        if (on.close_received) {
            if (!on.has_answered) {
                const result<> answered = co_await answer_with_close(on, on.close_code);
                if (!answered) co_return fail(answered);
            }
            co_return fail(simplenet::errc::end_of_stream);
        }
        if (on.closed) co_return fail(std::errc::operation_canceled);
        if (on.server_ends && what == reading::for_message) on.leave_with_server();
        if (on.is_overdue()) {
            on.end(std::make_error_code(std::errc::timed_out));
            continue;
        }
        if (!queue.take_inline_turn()) {
            // A peer that floods must not keep the others of the loop waiting, nor a stop: there is
            // always something to read, so nothing else would notice that.
            co_await yield();
            const result<> goes_on = co_await simplenet::detail::refusal{};
            if (!goes_on) co_return fail(goes_on);
        }

        using event = message_assembler::event;
        const event met = on.messages.advance(on.unread, limit);
        std::uint16_t wrong = 0;
        if (met == event::message) {
            if (on.unread.empty()) on.input.release();
            co_return on.messages.take_message();
        }
        if (met == event::close) wrong = take_close(on, on.messages.control());
        if (met == event::wrong) wrong = on.messages.close_code();
        if (on.unread.empty()) on.input.release();
        if (wrong != 0) co_return fail(co_await end_with(on, wrong));
        if (met == event::ping && !on.close_sent) {
            on.output.owe_pong(on.messages.control());
            on.offer();
        }
        if (met != event::needs_bytes) continue;

        woken how{};
        std::error_code error;
        const bool must_send = on.has_idle_output();
        const mutable_buffer room =
            must_send || !on.lends ? mutable_buffer{} : on.messages.direct_room();
        if (!room.empty()) {
            watched read{on.stream.read_some(room), on, watched_for::bytes_to_come, how};
            const result<std::size_t> count = co_await read;
            const bool accepted = on.messages.filled(count.value_or(0));
            if (!accepted) co_return fail(co_await end_with(on, on.messages.close_code()));
            if (count) {
                on.heard();
                continue;
            }
            error = count.error();
        } else {
            result<received> there = on.stream.try_receive();
            if (there) {
                on.take_input(std::move(*there));
                continue;
            }
            error = there.error();
            if (error == std::errc::operation_would_block) {
                if (must_send || !on.lends) {
                    const result<> waited = co_await wait_for_either(on);
                    if (!waited) co_return fail(waited);
                    continue;
                }
                watched wait{on.stream.readable(), on, watched_for::bytes_to_come, how};
                const result<> waited = co_await wait;
                if (waited) continue;
                error = waited.error();
            }
        }
        if (const std::error_code ended = settle(on, error, how)) co_return fail(ended);
    }
}

} // namespace simplenet::v0::http::detail
