#pragma once
// serve_connection: the life of a connection to an HTTP server. Layer http, private.

#include "http/server/exchange.hpp"
#include "http/server/idle_wait.hpp"
#include "http/server/last_bytes.hpp"
#include "http/server/service.hpp"
#include "http/server/stream_transport.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/server/detail/connection_handler.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>

namespace simplenet::v0::http::detail {

/// An exchange in memory that is borrowed from the loop.
template <class Stream>
class borrowed_exchange {
public:
    borrowed_exchange(connection_state& connection, Stream& over) {
        // Before the exchange looks: its parser has places for so many.
        const std::size_t fields = connection.loop.current()->what->with.header_count;
        const std::size_t fixed = sizeof(parts) + fields * sizeof(field_entry);
        memory_ = scratch::borrow(fixed + least_spare <= small ? small : fixed + least_spare);
        std::byte* const begin = memory_.data();
        // Not initialised: the parser writes an entry before anything reads it.
        auto* const entries = reinterpret_cast<field_entry*>(begin + sizeof(parts));
        parts_ = ::new (static_cast<void*>(begin))
            parts{connection, over, std::span{entries, fields},
                  std::span{reinterpret_cast<char*>(begin) + fixed, memory_.size() - fixed}};
    }
    borrowed_exchange(const borrowed_exchange&) = delete;
    borrowed_exchange& operator=(const borrowed_exchange&) = delete;
    /// Also called when the loop ends in the middle.
    ~borrowed_exchange() {
        if (!is_left_ && is_cut()) abort_connection(parts_->below.stream());
        std::destroy_at(parts_);
    }

    /// Whether the connection has to be reset. That is left to the caller then.
    [[nodiscard]] bool take_reset() noexcept {
        is_left_ = true;
        return is_cut();
    }

    exchange* operator->() const noexcept { return &parts_->in_progress; }

private:
    struct alignas(std::max_align_t) parts {
        parts(connection_state& connection, Stream& over, std::span<field_entry> entries,
              std::span<char> spare)
            : below{over}
            , in_progress{connection, below, entries, spare} {}

        stream_transport<Stream> below;
        exchange in_progress;
    };
    static constexpr std::size_t small = std::size_t{4} * 1024;
    static constexpr std::size_t least_spare = 512;

    /// Whether the client must not take what it has for complete.
    [[nodiscard]] bool is_cut() const noexcept { return parts_->in_progress.leaves_a_part(); }

    scratch memory_;
    parts* parts_;
    bool is_left_ = false;
};

/// Resets a connection when its scope ends, also if that is the end of the loop.
template <class Stream>
class reset_at_end {
public:
    explicit reset_at_end(Stream& stream) noexcept
        : stream_{stream} {}
    reset_at_end(const reset_at_end&) = delete;
    reset_at_end& operator=(const reset_at_end&) = delete;
    ~reset_at_end() { abort_connection(stream_); }

private:
    Stream& stream_;
};

/// Lets a client have the answers before one that is not complete, then resets the connection.
template <class Stream>
task<> reset_when_received(Stream& stream, limits with, uptake so_far) {
    const reset_at_end<Stream> at_the_end{stream};
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const int socket = socket_of(stream).native_handle();
    constexpr auto until = last_wait::step::acknowledged;
    last_wait waiting{within, socket, with, until, {}, so_far};
    if (!waiting.goes_on()) co_return;
    auto sleeping = waiting.of(async_sleep(std::chrono::nanoseconds::max()));
    static_cast<void>(co_await std::move(sleeping));
}

/// How long a client that has taken everything may be silent before its connection is closed.
[[nodiscard]] inline std::chrono::nanoseconds silence_before(ending how, const limits& with) {
    using std::chrono::nanoseconds;
    if (how == ending::close) return nanoseconds::zero();
    const bool has_limit = with.linger_idle > nanoseconds::zero();
    const nanoseconds most = has_limit ? with.linger_idle : nanoseconds::max();
    // A client that keeps its connections for later does not close at once: it must not hold up the
    // end of the server.
    return how == ending::settle ? std::min<nanoseconds>(most, std::chrono::seconds{1}) : most;
}

/// Closes a connection so that its client gets everything, whatever it still sends (RFC 9112,
/// section 9.6). With TLS it gets a close_notify too, which tells it that the answer is complete
/// (section 9.8).
template <class Stream>
task<> close_when_taken(Stream& stream, ending how, limits with, uptake so_far) {
    // A client of 18 Mbit/s uploads this in the 30 s of limits::linger, and reads an early answer
    // only then. A faster one that floods costs the loop some 10 ms in all.
    constexpr std::size_t most_dropped = std::size_t{64} * 1024 * 1024;
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const int socket = socket_of(stream).native_handle();
    leave_last_bytes(socket, with);
    const std::chrono::nanoseconds silence = silence_before(how, with);
    last_wait waiting{within, socket, with, last_wait::step::sent, silence, so_far};
    auto telling = waiting.of(async_shutdown_write(stream));
    const result<> told = co_await std::move(telling);
    bool is_open = told.has_value(); // the client may still send something
    for (std::size_t dropped = 0; is_open && dropped <= most_dropped && waiting.goes_on();) {
        auto receiving = waiting.of(stream.receive());
        const result<received> bytes = co_await std::move(receiving);
        is_open = bytes.has_value();
        const bool is_end = !bytes && bytes.error() == simplenet::errc::end_of_stream;
        if (is_end && waiting.is_something_left()) {
            // It is not left to the kernel, where no limit counts it.
            auto sleeping = waiting.of(async_sleep(std::chrono::nanoseconds::max()));
            static_cast<void>(co_await std::move(sleeping));
        }
        if (!bytes) break;
        dropped += bytes->size();
        waiting.heard();
    }
    if (waiting.is_too_slow()) abort_connection(stream);
}

/// How a connection ends whose client asks for nothing more.
[[nodiscard]] inline ending end_of_idle(const connection_state& connection, int socket,
                                        bool is_server_stopping) {
    if (connection.requests == 0) return ending::leave;
    // A request that crosses the end of the server would meet a closed socket, and the reset would
    // drop what the client has not received.
    if (is_server_stopping) return ending::settle;
    const bool is_waited_for = !connection.gives_way && has_last_bytes(socket);
    return is_waited_for ? ending::close : ending::leave;
}

/// Answers the requests that begin with what has come, and ends the connection unless it is idle
/// then.
template <class Stream>
task<> answer_requests(Stream& stream, connection_state& connection, idle_wait<Stream>& waited) {
    ending end = ending::idle;
    std::exception_ptr thrown;      // by a handler
    bool would_drop_others = false; // a reset: earlier answers may be on their way
    uptake so_far;
    received first = waited.take();
    std::optional<task<result<>>> successor;
    const int socket = socket_of(stream).native_handle();
    if (first.empty()) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        const bool is_stopping = simplenet::detail::is_server_stopping(within);
        end = end_of_idle(connection, socket, is_stopping);
    } else {
        borrowed_exchange<Stream> request{connection, stream};
        end = co_await request->run(std::move(first));
        if (request.take_reset()) end = ending::abort;
        would_drop_others = connection.requests > 1 && !request->is_lost();
        so_far = request->taken();
        thrown = request->thrown();
        successor = request->take_successor();
    }
    if (successor) {
        const result<> outcome = co_await *std::move(successor);
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        if (!outcome && !within.stopped()) connection.failed = true;
    }
    switch (end) {
    case ending::idle:
    case ending::upgraded:
        break;
    case ending::leave:
        leave_last_bytes(socket, connection.loop.with());
        break;
    case ending::abort:
        if (would_drop_others) {
            co_await reset_when_received(stream, connection.loop.with(), so_far);
        } else {
            abort_connection(stream);
        }
        break;
    case ending::close:
        if (is_plain<Stream> && !has_last_bytes(socket)) break;
        [[fallthrough]];
    case ending::settle:
    case ending::linger:
        co_await close_when_taken(stream, end, connection.loop.with(), so_far);
    }
    if (thrown) std::rethrow_exception(thrown);
    connection.ended = end != ending::idle;
}

/// An await of a task keeps the task beside its awaiter.
template <class Stream>
[[nodiscard]] auto answering(Stream& stream, connection_state& connection,
                             idle_wait<Stream>& waited) {
    return answer_requests(stream, connection, waited).operator co_await();
}

/// Serves the requests of one connection until it ends.
// Its frame is most of what an idle connection costs, so everything else is in answer_requests(),
// and what has been decided in `connection`.
template <class Stream>
task<> serve_connection(Stream stream, connection_state connection) {
    while (!connection.ended) {
        idle_wait<Stream> waiting{stream, connection};
        co_await waiting;
        co_await answering(stream, connection, waiting);
    }
    if (connection.failed) throw simplenet::detail::handler_failed{};
}

} // namespace simplenet::v0::http::detail
