#pragma once
// serve_connection: the life of a connection to an HTTP server. Layer http, private.

#include "http/server/exchange.hpp"
#include "http/server/idle_wait.hpp"
#include "http/server/service.hpp"
#include "http/server/stream_transport.hpp"
#include "http/unacknowledged_bytes.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/server/detail/connection_handler.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/stream/close_lingering.hpp>
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
        if (parts_->in_progress.leaves_a_part()) abort_connection(parts_->below.stream());
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

    scratch memory_;
    parts* parts_;
};

/// Lets a client that may still be sending read what was written, then closes.
template <class Stream>
task<> close_behind_answer(Stream& stream, ending how, limits with) {
    // A client that keeps its connections for later does not close at once: it must not hold up the
    // end of the server.
    constexpr std::chrono::nanoseconds settling = std::chrono::seconds{1};
    const bool has_limit = with.linger_idle > std::chrono::nanoseconds::zero();
    const bool settles = how == ending::settle && (!has_limit || with.linger_idle > settling);
    stream.set_idle_timeout(settles ? settling : with.linger_idle);
    // A time of 0 means no limit to users, and no time at all to linger_options.
    const auto time =
        with.linger > std::chrono::nanoseconds::zero() ? with.linger : std::chrono::hours{24};
    // A client of 18 Mbit/s uploads this in the 30 s of limits::linger, and reads an early answer
    // only then (RFC 9112, section 9.6). A faster one that floods costs the loop some 10 ms in all.
    constexpr std::size_t most_dropped = std::size_t{64} * 1024 * 1024;
    const linger_options options{.bytes = most_dropped, .time = time};
    static_cast<void>(co_await async_close_lingering(stream, options));
}

/// Gives the client a moment to receive what was written, before a reset drops what its kernel has
/// not acknowledged. Answers to earlier requests may be among it, if the client pipelines.
template <class Stream>
task<> wait_for_acknowledgement(Stream& stream, limits with) {
    constexpr std::chrono::nanoseconds most = std::chrono::seconds{1};
    constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds{50};
    const bool has_limit = with.linger_idle > std::chrono::nanoseconds::zero();
    const auto until =
        std::chrono::steady_clock::now() + (has_limit ? std::min(most, with.linger_idle) : most);
    std::chrono::nanoseconds pause = std::chrono::milliseconds{1};
    while (unacknowledged_bytes(socket_of(stream).native_handle()) > 0 &&
           std::chrono::steady_clock::now() < until) {
        const result<> slept = co_await async_sleep(pause);
        if (!slept) co_return; // stopped
        pause = std::min(2 * pause, longest_pause);
    }
}

/// Sends close_notify, where the end of the connection is the end of a body (RFC 9112,
/// section 9.8). close() sends it only if the socket takes it at once.
template <class Stream>
task<> say_goodbye(Stream& stream, std::chrono::nanoseconds within) {
    const auto limit =
        within > std::chrono::nanoseconds::zero() ? within : std::chrono::nanoseconds::max();
    auto telling = async_shutdown_write(stream);
    static_cast<void>(co_await with_timeout(std::move(telling), limit));
}

/// Answers the requests that begin with what has come, and ends the connection unless it is idle
/// then.
template <class Stream>
task<> answer_requests(Stream& stream, connection_state& connection, idle_wait<Stream>& waited) {
    ending end = ending::settle;
    std::exception_ptr thrown; // by a handler
    received first = waited.take();
    std::optional<task<result<>>> successor;
    if (first.empty()) {
        // The last answer may be on its way. A request that crosses the end of the server would
        // meet a closed socket, and the reset would drop what the client has not received.
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        const bool answered = connection.requests != 0;
        if (!answered || !simplenet::detail::is_server_stopping(within)) {
            connection.ended = true;
            co_return;
        }
    } else {
        const borrowed_exchange<Stream> request{connection, stream};
        end = co_await request->run(std::move(first));
        if (end == ending::abort && connection.requests > 1 && !request->is_lost()) {
            co_await wait_for_acknowledgement(stream, connection.loop.with());
        }
        thrown = request->thrown();
        successor = request->take_successor();
    }
    if (successor) {
        const result<> outcome = co_await *std::move(successor);
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        if (!outcome && !within.stopped()) connection.failed = true;
    }
    if (end == ending::abort) abort_connection(stream);
    if (end == ending::linger || end == ending::settle) {
        co_await close_behind_answer(stream, end, connection.loop.with());
    }
    if constexpr (!is_plain<Stream>) {
        if (end == ending::close) {
            co_await say_goodbye(stream, connection.loop.with().linger_idle);
        }
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
