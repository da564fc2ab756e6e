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

/// Resets a connection when its scope ends, also if that is by an exception or with the loop.
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

/// An exchange in memory that is borrowed from the loop.
template <class Stream>
class borrowed_exchange {
public:
    /// @param reset  Set at the end if the client must not take what it has for complete.
    borrowed_exchange(connection_state& connection, Stream& over,
                      std::optional<reset_at_end<Stream>>& reset)
        : reset_{reset} {
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
        if (parts_->in_progress.leaves_a_part()) reset_.emplace(parts_->below.stream());
        std::destroy_at(parts_);
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

    std::optional<reset_at_end<Stream>>& reset_;
    scratch memory_;
    parts* parts_;
};

/// How long a client that has taken everything may be silent before its connection is closed.
[[nodiscard]] inline std::chrono::nanoseconds silence_before(ending how, const limits& with) {
    using std::chrono::nanoseconds;
    if (how == ending::close) return nanoseconds::zero();
    const bool has_limit = with.linger_idle > nanoseconds::zero();
    const nanoseconds most = has_limit ? with.linger_idle : nanoseconds::max();
    // A client that keeps its connections for later does not close at once. It must not hold up the
    // end of the server.
    return how == ending::settle ? std::min<nanoseconds>(most, std::chrono::seconds{1}) : most;
}

/// Waits until a client has the answers before one that is not complete.
template <class Stream>
task<> wait_until_received(Stream& stream, limits with, uptake so_far) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    last_wait waiting{within, socket_of(stream).native_handle(), with, {}, so_far};
    if (!waiting.goes_on()) co_return;
    auto rest = waiting.rest();
    static_cast<void>(co_await std::move(rest));
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
    // A time limit of the socket would go on while the client takes the answer.
    stream.set_idle_timeout(std::chrono::nanoseconds::zero());
    const int socket = socket_of(stream).native_handle();
    last_wait waiting{within, socket, with, silence_before(how, with), so_far};
    auto telling = waiting.of(async_shutdown_write(stream));
    const result<> told = co_await std::move(telling);
    for (std::size_t dropped = 0; told && dropped <= most_dropped && waiting.goes_on();) {
        auto receiving = waiting.of(stream.receive());
        const result<received> bytes = co_await std::move(receiving);
        if (!bytes && waiting.is_client_behind()) {
            // The client has ended its side. It is waited for, because no limit counts what is left
            // to the kernel.
            auto rest = waiting.rest();
            static_cast<void>(co_await std::move(rest));
        }
        if (!bytes) break;
        dropped += bytes->size();
        waiting.heard();
    }
    if (waiting.is_too_slow()) {
        abort_connection(stream);
    } else {
        limit_last_bytes(socket, with);
    }
}

/// How a connection ends whose client asks for nothing more.
[[nodiscard]] inline ending end_of_idle(const connection_state& connection,
                                        bool is_server_stopping) noexcept {
    // A request that crosses the end of the server would meet a closed socket, and the reset would
    // drop what the client has not received.
    if (is_server_stopping) return ending::settle;
    return connection.gives_way ? ending::give_way : ending::close;
}

/// Answers the requests that begin with what has come, and ends the connection unless it is idle
/// then.
template <class Stream>
task<> answer_requests(Stream& stream, connection_state& connection, idle_wait<Stream>& waited) {
    ending end = ending::idle;
    std::exception_ptr thrown; // by a handler
    std::optional<reset_at_end<Stream>> reset;
    bool would_drop_others = false; // a reset: earlier answers may be on their way
    uptake so_far;
    received first = waited.take();
    std::optional<task<result<>>> successor;
    if (!first.empty()) {
        const borrowed_exchange<Stream> request{connection, stream, reset};
        connection.gives_way = false; // what has arrived wins
        end = co_await request->run(std::move(first));
        would_drop_others = request->follows_others() && !request->is_lost();
        so_far = request->taken();
        thrown = request->thrown();
        successor = request->take_successor();
    } else if (connection.requests != 0) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        end = end_of_idle(connection, simplenet::detail::is_server_stopping(within));
    } else {
        connection.ended = true;
        co_return;
    }
    if (reset) end = ending::abort;
    if (successor) {
        const result<> outcome = co_await *std::move(successor);
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        if (!outcome && !within.stopped()) connection.failed = true;
    }
    const limits& with = connection.loop.with();
    switch (end) {
    case ending::idle:
    case ending::upgraded:
        break;
    case ending::abort:
        if (!reset) reset.emplace(stream);
        if (would_drop_others) co_await wait_until_received(stream, with, so_far);
        break;
    case ending::give_way:
        limit_last_bytes(socket_of(stream).native_handle(), with);
        break;
    case ending::close:
        // What is on its way is not waited for: a close after each answer would take longer.
        if (!has_last_bytes(socket_of(stream).native_handle())) break;
        [[fallthrough]];
    case ending::settle:
    case ending::linger:
        co_await close_when_taken(stream, end, with, so_far);
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
