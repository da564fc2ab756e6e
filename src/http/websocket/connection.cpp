#include "http/websocket/connection.hpp"
#include "http/websocket/watch.hpp"

#include <simplenet/http/errc.hpp>

#include <algorithm>
#include <new>

namespace simplenet::v0::http::detail {

websocket_connection::websocket_connection(any_stream&& over, websocket_role side,
                                           const websocket_options& options,
                                           received&& from_handshake, std::string&& chosen) noexcept
    : stream{std::move(over)}
    , role{side}
    , message_limit{options.message_limit}
    , ping_interval{options.ping_interval}
    , pong_within{options.pong_within}
    , close_within{options.close_within}
    , write_idle{options.write_idle}
    , input{std::move(from_handshake)}
    , unread{input}
    , messages{side}
    , output{side}
    , protocol{std::move(chosen)} {}

void websocket_connection::end(std::error_code why) noexcept {
    if (!failure && !close_received) failure = why;
    close_stream();
}

void websocket_connection::close_stream() noexcept {
    if (std::exchange(closed, true)) return;
    if (close_code == 0) close_code = close_codes::abnormal;
    unread = {};
    input.release();
    stream.close();
}

std::error_code websocket_connection::write_refusal() const noexcept {
    if (failure) return failure;
    if (write_failure) return write_failure;
    if (closing || close_sent || close_received || closed) {
        return std::make_error_code(std::errc::broken_pipe);
    }
    return {};
}

void websocket_connection::offer() noexcept {
    while (has_idle_output() && !closed) {
        const const_buffer next = output.next();
        result<std::size_t> count = fail(std::errc::operation_would_block);
        try {
            count = stream.try_write_some(next);
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): it is tried again
        }
        if (count) {
            moved();
            output.sent(*count);
            continue;
        }
        if (count.error() != std::errc::operation_would_block) write_failure = count.error();
        return;
    }
}

void websocket_connection::wake_reader() noexcept {
    if (wait != nullptr) wait->wake(woken::by_writer);
}

void websocket_connection::server_stops() noexcept {
    server_ends = true;
    wake_reader();
}

void websocket_connection::leave_with_server() noexcept {
    if (!std::exchange(server_ends, false) || closing || close_sent || close_received) return;
    close_sent = true;
    output.owe_close(close_codes::going_away);
    const auto now = simplenet::detail::timed_queue::present();
    if (close_within < never - now) close_until = now + close_within;
    offer();
}

bool websocket_connection::is_overdue() const noexcept {
    return close_until != never && simplenet::detail::timed_queue::present() >= close_until;
}

std::chrono::steady_clock::time_point websocket_connection::stuck_ends() noexcept {
    if (write_idle.count() <= 0) return never;
    // A reader that sends output begins another wait whenever bytes arrive: a peer that sends and
    // never reads must not start the time anew.
    if (!std::exchange(is_stuck, true)) stuck_since = simplenet::detail::timed_queue::present();
    return write_idle < never - stuck_since ? stuck_since + write_idle : never;
}

std::chrono::steady_clock::time_point websocket_connection::silence_ends() noexcept {
    if (close_until != never) return close_until;
    const bool watches = ping_interval.count() > 0 && !close_sent && !closing;
    if (!watches) return never;
    if (!std::exchange(is_quiet, true)) quiet_since = simplenet::detail::timed_queue::present();
    const auto limit = pinged ? pong_within : ping_interval;
    return limit < never - quiet_since ? quiet_since + limit : never;
}

} // namespace simplenet::v0::http::detail
