#include "http/websocket/connection.hpp"
#include "http/websocket/operations.hpp"
#include "http/websocket/watch.hpp"

#include <simplenet/coro/detail/refusal.hpp>
#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>

#include <limits>

namespace simplenet::v0::http::detail {

namespace {

task<result<>> say_last_word(websocket_connection& on, std::uint16_t code) {
    const result<> sent = co_await send_close(on, code, {});
    if (!sent) co_return fail(sent);
    // A client waits for its server to end the connection (RFC 6455, 7.1.1).
    if (on.role == websocket_role::client) co_return result<>{};
    co_return co_await end_writes(on);
}

/// Waits until no read is in flight.
task<result<>> wait_for_reader(websocket_connection& on) {
    while (on.reads) {
        on.reader_left.reset();
        const result<> left = co_await on.reader_left.wait();
        if (!left) co_return fail(left);
    }
    co_return result<>{};
}

/// Drops what the peer still sends, up to its end. The close of a TCP socket with unread bytes
/// resets the connection, and a reset would delete our close frame before the peer has read it.
task<result<>> drop_input(websocket_connection& on) {
    auto& queue = simplenet::detail::run_queue::require_current();
    while (!on.closed) {
        on.unread = {};
        on.input.release();
        if (!queue.take_inline_turn()) {
            co_await yield();
            const result<> goes_on = co_await simplenet::detail::refusal{}; // see read_message()
            if (!goes_on) co_return fail(goes_on);
        }
        const result<received> there = on.stream.try_receive();
        if (there) continue;
        if (there.error() != std::errc::operation_would_block) co_return fail(there);
        const result<> waited = co_await wait_for_input(on);
        if (!waited) co_return fail(waited);
    }
    co_return result<>{};
}

/// After the close frames: lets the peer read ours and close first, or at the same time.
task<result<>> part(websocket_connection& on) {
    const result<> left = co_await wait_for_reader(on);
    if (!left) co_return fail(left);
    if (on.closed || on.writing.locked()) co_return result<>{};
    const result<> told = co_await end_writes(on);
    // A client waits for its server in any case. The client of a server that cannot tell it would
    // wait for the server's close, so that must not wait for the client.
    if (!told && on.role == websocket_role::server) co_return fail(told);
    co_return co_await drop_input(on);
}

task<result<>> shake_hands(websocket_connection& on, std::uint16_t code, std::string_view reason) {
    if (!on.has_answered) {
        // An answer repeats what the peer has said (RFC 6455, 5.5.1).
        const std::uint16_t owed = on.refusal_code != 0 ? on.refusal_code
                                   : on.close_received  ? on.close_code
                                                        : std::uint16_t{0};
        if (owed != 0) {
            code = owed;
            reason = {};
        }
        const result<> sent = co_await send_close(on, code, reason);
        // A peer that takes nothing any more may have sent its close frame.
        if (!sent && is_stop(sent.error())) co_return fail(sent);
    }
    while (!on.close_received && !on.failure) {
        const result<> left = co_await wait_for_reader(on);
        if (!left) co_return fail(left);
        if (on.close_received || on.failure) break;
        on.messages.discard();
        constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
        const auto read = co_await read_message(websocket_ref{on}, no_limit, reading::for_close);
        if (!on.close_received && !on.failure) co_return fail(read);
    }
    // The handshake is over, so what goes wrong in the end is no failure.
    static_cast<void>(co_await part(on));
    if (on.failure) co_return fail(on.failure);
    co_return result<>{};
}

} // namespace

task<result<>> answer_with_close(websocket_connection& on, std::uint16_t code) {
    const result<> said = co_await with_timeout(say_last_word(on, code), on.close_within);
    if (!said && is_stop(said.error())) {
        const bool by_caller = co_await this_task::stop_requested();
        if (by_caller) co_return fail(said);
    }
    on.has_answered = true;
    on.close_sent = true;
    co_return result<>{};
}

// Not a local type, see reading.cpp.
class stream_closer {
public:
    explicit stream_closer(websocket_connection& on) noexcept
        : on_{on} {}
    stream_closer(const stream_closer&) = delete;
    stream_closer& operator=(const stream_closer&) = delete;
    ~stream_closer() { on_.close_stream(); }

private:
    websocket_connection& on_;
};

task<result<>> close(websocket_ref keep, std::uint16_t code, std::string_view reason) {
    websocket_connection& on = *keep;
    if (!is_close_code(code) || reason.size() > close_reason_limit || !is_utf8(reason)) {
        co_return fail(std::errc::invalid_argument);
    }
    const stream_closer at_end{on};
    on.closing = true;
    if (!on.closed) {
        const result<> shaken =
            co_await with_timeout(shake_hands(on, code, reason), on.close_within);
        if (!shaken) co_return fail(shaken);
    }
    if (on.failure) co_return fail(on.failure);
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
