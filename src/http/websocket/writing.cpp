#include "http/websocket/connection.hpp"
#include "http/websocket/operations.hpp"
#include "http/websocket/watch.hpp"

#include <simplenet/coro/detail/refusal.hpp>

#include <new>

namespace simplenet::v0::http::detail {

namespace {

/// Notes why a write has failed, and returns what to report.
std::error_code note_write_failure(websocket_connection& on, std::error_code error,
                                   woken how) noexcept {
    if (on.closed) return on.failure ? on.failure : error;
    if (how == woken::by_timer && is_stop(error)) {
        on.end(std::make_error_code(std::errc::timed_out));
        return on.failure ? on.failure : std::make_error_code(std::errc::timed_out);
    }
    if (!is_stop(error)) on.write_failure = error;
    return error;
}

/// Ends a turn as the writer. Sends what has come up meanwhile, such as pongs, as far as the stream
/// takes it without a wait. The rest is the reader's to send.
void end_turn(websocket_connection& on, async_mutex::guard& turn) noexcept {
    turn.unlock();
    if (on.output.empty()) on.moved(); // also what was stopped before it began
    on.offer();
    if (on.has_idle_output()) on.wake_reader();
}

/// Makes the stream ready for a new frame. @pre the caller holds `writing`.
task<result<>> prepare(websocket_connection& on) {
    if (const std::error_code refused = on.write_refusal()) co_return fail(refused);
    const result<> sent = co_await send_output(on);
    if (!sent) co_return fail(sent);
    if (const std::error_code refused = on.write_refusal()) co_return fail(refused);
    co_return result<>{};
}

/// @pre the caller holds `writing`, and there is no output.
task<result<>> send_message(websocket_connection& on, enum websocket::message::kind kind,
                            const_buffer data) {
    outgoing_message message{on.role, kind, data};
    for (auto parts = message.next(); !parts.empty(); parts = message.next()) {
        woken how{};
        watched write{on.stream.write_some(parts), on, watched_for::bytes_to_leave, how};
        const result<std::size_t> count = co_await write;
        if (count) {
            on.moved();
            message.sent(*count);
            continue;
        }
        const std::error_code error = note_write_failure(on, count.error(), how);
        if (!is_stop(error) || on.closed || !message.begun()) co_return fail(error);
        try {
            message.copy_rest(on.output.rest());
        } catch (const std::bad_alloc&) {
            on.end(std::make_error_code(std::errc::not_enough_memory));
            throw;
        }
        co_return result<>{};
    }
    co_return result<>{};
}

} // namespace

task<result<>> send_output(websocket_connection& on) {
    while (!on.output.empty() && !on.write_failure && !on.closed) {
        woken how{};
        watched write{on.stream.write_some(on.output.next()), on, watched_for::bytes_to_leave, how};
        const result<std::size_t> count = co_await write;
        if (!count) co_return fail(note_write_failure(on, count.error(), how));
        on.moved();
        on.output.sent(*count);
    }
    if (on.write_failure) co_return fail(on.write_failure);
    if (on.closed) co_return fail(std::errc::broken_pipe);
    co_return result<>{};
}

task<result<>> write_message(websocket_ref keep, enum websocket::message::kind kind,
                             const_buffer data) {
    websocket_connection& on = *keep;
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    if (kind == websocket::message::kind::text && !is_utf8(data)) {
        co_return fail(std::errc::illegal_byte_sequence);
    }
    auto turn = co_await on.writing.lock();
    if (!turn) co_return fail(turn);
    result<> done = co_await prepare(on);
    if (done) done = co_await send_message(on, kind, data);
    end_turn(on, *turn);
    co_return done;
}

task<result<>> ping(websocket_ref keep, const_buffer payload) {
    websocket_connection& on = *keep;
    const result<> stopped = co_await simplenet::detail::refusal{};
    if (!stopped) co_return fail(stopped);
    if (payload.size() > control_limit) co_return fail(std::errc::message_size);
    auto turn = co_await on.writing.lock();
    if (!turn) co_return fail(turn);
    result<> done = co_await prepare(on);
    if (done) {
        on.output.add(websocket_opcode::ping, payload);
        done = co_await send_output(on);
        if (!done && is_stop(done.error()) && !on.output.take_back()) done = {};
    }
    end_turn(on, *turn);
    co_return done;
}

task<result<>> send_close(websocket_connection& on, std::uint16_t code, std::string_view reason) {
    auto turn = co_await on.writing.lock();
    if (!turn) co_return fail(turn);
    // The peer needs no pong any more.
    on.output.forget_owed();
    result<> done = co_await send_output(on);
    if (done && !on.close_sent) {
        std::array<std::byte, control_limit> payload; // NOLINT(*-member-init): written at once
        const std::size_t size = write_close_payload(code, reason, payload);
        on.output.forget_owed();
        on.output.add(websocket_opcode::close, const_buffer{payload}.first(size));
        on.close_sent = true;
        done = co_await send_output(on);
        if (!done && is_stop(done.error()) && on.output.take_back()) on.close_sent = false;
    }
    end_turn(on, *turn);
    co_return done;
}

task<result<>> end_writes(websocket_connection& on) {
    if (on.write_ended || !on.close_sent || !on.output.empty() || on.writing.locked()) {
        co_return result<>{};
    }
    on.write_ended = true;
    co_return co_await on.stream.shutdown_write();
}

} // namespace simplenet::v0::http::detail
