#pragma once
// async_close_lingering: closes a stream so that the peer can still read what was written last.
// Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// How long async_close_lingering() reads, at most.
struct linger_options {
    std::size_t bytes = std::size_t{1024} * 1024;
    std::chrono::nanoseconds time = std::chrono::seconds{2};
};

} // namespace runtime

namespace detail {

template <class Stream>
concept closable = requires(Stream& stream) { stream.close(); };

/// Closes a borrowed or owned stream at the end of its scope, also if that is an exception or the
/// end of the loop. A stream without close() is closed by its destructor.
template <class Stream>
class closing {
public:
    explicit closing(Stream& stream) noexcept
        : stream_{&stream} {}
    closing(const closing&) = delete;
    closing& operator=(const closing&) = delete;
    ~closing() {
        if constexpr (closable<Stream>) stream_->close();
    }

private:
    Stream* stream_;
};

/// Tells the peer that nothing more will come, then reads and drops up to `most` bytes.
template <class Stream>
task<result<>> end_and_drain(Stream& stream, std::size_t most) {
    const result<> told = co_await async_shutdown_write(stream);
    if (!told) co_return told;
    std::size_t dropped = 0;
    while (dropped <= most) {
        if constexpr (requires { stream.receive(); }) {
            // Waits without a buffer: many streams may linger at once.
            const auto bytes = co_await stream.receive();
            if (!bytes && bytes.error() == errc::end_of_stream) co_return result<>{};
            if (!bytes) co_return fail(bytes);
            dropped += bytes->size();
        } else {
            std::array<std::byte, 2048> bytes;
            const result<std::size_t> count = co_await stream.read_some(bytes);
            if (!count && count.error() == errc::end_of_stream) co_return result<>{};
            if (!count) co_return fail(count);
            dropped += *count;
        }
    }
    co_return fail(errc::limit_exceeded);
}

/// Owns the stream, or borrows it if `S` is a reference.
template <class S>
task<result<>> close_lingering(S stream, linger_options options) {
    const closing<std::remove_reference_t<S>> at_the_end{stream};
    co_return co_await with_timeout(end_and_drain(stream, options.bytes), options.time);
}

} // namespace detail

inline namespace runtime {

/// Closes `stream` in a way that lets the peer read everything that was written before.
///
/// A TCP socket that is closed while data from the peer is unread, or that receives data after its
/// close, resets the connection, and the reset deletes what the peer has not read yet. So an answer
/// that does not wait for the whole request, such as a refusal, may never be seen. This function
/// tells the peer that nothing more will come, reads and drops what the peer still sends until the
/// peer closes too, or up to the limits, and then closes the stream. It is closed in every case
/// when the await returns.
///
/// @pre No other operation is in flight on `stream`.
/// @param stream  An lvalue is borrowed and outlives the await; an rvalue is moved into the task,
///                which may then be spawned.
/// @param options  Limits on what the peer can make us read and wait for, telling it included.
/// @return Success: the peer has ended its side too.
///
/// @par Errors
/// - `errc::limit_exceeded`: the peer sent more than `options.bytes`.
/// - `errc::deadline_exceeded`: the peer was not finished after `options.time`.
/// - `std::errc::not_connected`: the connection was over already.
/// - Any other error of the stream; it may mean that the peer has not read everything.
/// @par Cancellation
/// Closes the stream at once.
/// @par Cost
/// Two coroutines, whose frames are recycled. On the sockets of the runtime, no buffer while it
/// waits.
/// @par Example
/// @snippet streams.cpp lingering
template <class S>
    requires async_reader<std::remove_reference_t<S>> &&
             detail::half_closable<std::remove_reference_t<S>> &&
             (!std::is_lvalue_reference_v<S> || detail::closable<std::remove_reference_t<S>>)
[[nodiscard]] task<result<>> async_close_lingering(S&& stream, linger_options options = {}) {
    return detail::close_lingering<S>(std::forward<S>(stream), options);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
