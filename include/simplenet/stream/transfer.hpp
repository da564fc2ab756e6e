#pragma once
// async_read_exact and async_write_all: transfers of a whole buffer, over any stream. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/detail/refusal.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/received.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <system_error>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// A type with `read_some(mutable_buffer)`, an awaitable of `result<std::size_t>`.
template <class Stream>
concept async_reader = requires(Stream& stream, mutable_buffer into) {
    { stream.read_some(into) } -> detail::awaitable;
    requires std::same_as<detail::await_result<decltype(stream.read_some(into))>,
                          result<std::size_t>>;
};

/// A type with `write_some(const_buffer)`, an awaitable of `result<std::size_t>`. A write_some()
/// that also takes write_options gets them; any other ignores them.
template <class Stream>
concept async_writer = requires(Stream& stream, const_buffer from) {
    { stream.write_some(from) } -> detail::awaitable;
    requires std::same_as<detail::await_result<decltype(stream.write_some(from))>,
                          result<std::size_t>>;
};

/// An async_reader that can also wait without taking, by `readable()`, an awaitable of `result<>`,
/// and take without waiting, by `try_receive()`, which returns `result<received>`.
template <class Stream>
concept ready_reader = async_reader<Stream> && requires(Stream& stream) {
    { stream.readable() } -> detail::awaitable;
    requires std::same_as<detail::await_result<decltype(stream.readable())>, result<>>;
    { stream.try_receive() } -> std::same_as<result<received>>;
};

/// An async_writer that can also write without waiting, by `try_write_some(const_buffer)`, which
/// returns `result<std::size_t>`.
template <class Stream>
concept ready_writer = async_writer<Stream> && requires(Stream& stream, const_buffer from) {
    { stream.try_write_some(from) } -> std::same_as<result<std::size_t>>;
};

} // namespace runtime

namespace detail {

/// Accepts several buffers in one write.
template <class Stream>
concept vectored_writer =
    async_writer<Stream> && requires(Stream& stream, std::span<const const_buffer> from) {
        { stream.write_some(from) } -> awaitable;
        requires std::same_as<await_result<decltype(stream.write_some(from))>, result<std::size_t>>;
    };

/// write_some() of a stream that may not take write_options.
template <class Stream, class Buffers>
[[nodiscard]] auto write_some_with(Stream& stream, const Buffers& from, write_options options) {
    if constexpr (requires { stream.write_some(from, options); }) {
        return stream.write_some(from, options);
    } else {
        return stream.write_some(from);
    }
}

/// The options of a write before `rest`.
[[nodiscard]] inline write_options before(std::span<const const_buffer> rest,
                                          write_options options) noexcept {
    const auto has_bytes = [](const const_buffer& each) { return !each.empty(); };
    return {.more = options.more || std::any_of(rest.begin(), rest.end(), has_bytes)};
}

/// Whether the kernel or a sandbox refuses to move bytes itself; then they are read and written.
[[nodiscard]] bool is_refusal(std::error_code code) noexcept;

/// A transfer of no bytes: succeeds at once, unless the caller was stopped.
inline task<transfer_result> transfer_of_nothing() {
    const result<> refused = co_await refusal{};
    if (!refused) co_return std::unexpected{transfer_error{refused.error(), 0}};
    co_return transfer_result{0};
}

template <class Stream>
task<transfer_result> read_exact_from(Stream& stream, mutable_buffer into) {
    std::size_t done = 0;
    if (into.empty()) co_return co_await transfer_of_nothing();
    while (done < into.size()) {
        const result<std::size_t> count = co_await stream.read_some(into.subspan(done));
        if (!count) co_return std::unexpected{transfer_error{count.error(), done}};
        done += *count;
    }
    co_return done;
}

template <class Stream>
task<transfer_result> write_all_to(Stream& stream, const_buffer from, write_options options) {
    std::size_t done = 0;
    if (from.empty()) co_return co_await transfer_of_nothing();
    while (done < from.size()) {
        const result<std::size_t> count =
            co_await write_some_with(stream, from.subspan(done), options);
        if (!count) co_return std::unexpected{transfer_error{count.error(), done}};
        done += *count;
    }
    co_return done;
}

/// Removes `count` bytes and the empty buffers after them from `buffers`. `skip` bytes of the first
/// buffer have been removed before.
inline void pass(std::span<const const_buffer>& buffers, std::size_t& skip,
                 std::size_t count) noexcept {
    skip += count;
    while (!buffers.empty() && skip >= buffers.front().size()) {
        skip -= buffers.front().size();
        buffers = buffers.subspan(1);
    }
}

template <vectored_writer Stream>
task<transfer_result> write_all_to(Stream& stream, std::span<const const_buffer> from,
                                   write_options options) {
    std::array<const_buffer, 16> next;
    std::size_t done = 0;
    std::size_t skip = 0;
    pass(from, skip, 0);
    if (from.empty()) co_return co_await transfer_of_nothing();
    while (!from.empty()) {
        const std::size_t many = std::min(from.size(), next.size());
        std::copy_n(from.begin(), many, next.begin());
        next[0] = next[0].subspan(skip);
        const write_options part = before(from.subspan(many), options);
        const result<std::size_t> count =
            co_await write_some_with(stream, std::span<const const_buffer>{next}.first(many), part);
        if (!count) co_return std::unexpected{transfer_error{count.error(), done}};
        done += *count;
        pass(from, skip, *count);
    }
    co_return done;
}

template <class Stream>
task<transfer_result> write_all_to(Stream& stream, std::span<const const_buffer> from,
                                   write_options options) {
    std::size_t done = 0;
    if (from.empty()) co_return co_await transfer_of_nothing();
    for (std::size_t at = 0; at < from.size(); ++at) {
        const write_options part = before(from.subspan(at + 1), options);
        const transfer_result count = co_await write_all_to(stream, from[at], part);
        if (!count) {
            co_return std::unexpected{
                transfer_error{count.error().code, done + count.error().transferred}};
        }
        done += *count;
    }
    co_return done;
}

template <class Stream, class Buffers>
[[nodiscard]] auto write_all(Stream& stream, const Buffers& from, write_options options) {
    if constexpr (requires { stream_access::write_all_operation(stream, from, options); }) {
        return stream_access::write_all_operation(stream, from, options);
    } else {
        return write_all_to(stream, from, options);
    }
}

} // namespace detail

inline namespace runtime {

/// Reads until `into` is full.
///
/// @pre No other read is in flight on `stream`, which outlives the await.
/// @param into  Borrowed until the await returns; if empty, succeeds with 0.
/// @return An awaitable of `transfer_result`: `into.size()`.
///
/// @par Errors
/// Those of the stream's read_some(); `transferred` is the number of bytes that are in `into`
/// nevertheless. If the stream ends before `into` is full: `errc::end_of_stream`.
/// @par Cancellation
/// Nothing is lost: bytes that were read are counted, and the rest is still in the stream.
/// @par Cost
/// On the streams of the runtime one operation, without a coroutine.
template <async_reader Stream>
[[nodiscard]] auto async_read_exact(Stream& stream, mutable_buffer into) {
    if constexpr (requires { detail::stream_access::read_exact_operation(stream, into); }) {
        return detail::stream_access::read_exact_operation(stream, into);
    } else {
        return detail::read_exact_from(stream, into);
    }
}

/// Writes all of `from`.
///
/// @pre No other write is in flight on `stream`, which outlives the await.
/// @param from  Borrowed until the await returns; if empty, succeeds with 0.
/// @return An awaitable of `transfer_result`: `from.size()`.
///
/// @par Errors
/// Those of the stream's write_some(); `transferred` is the number of bytes that the stream took
/// before the error.
/// @par Cancellation
/// The stream is usable at the reported offset.
/// @par Cost
/// On the streams of the runtime one operation, without a coroutine; nearly always one send(2).
template <async_writer Stream>
[[nodiscard]] auto async_write_all(Stream& stream, const_buffer from) {
    return detail::write_all(stream, from, {});
}

/// The same for several buffers, one after the other, in as few writes as the stream allows.
///
/// @param from  Borrowed until the await returns, including the array of buffers.
template <async_writer Stream>
[[nodiscard]] auto async_write_all(Stream& stream, std::span<const const_buffer> from) {
    return detail::write_all(stream, from, {});
}

// Not a default argument, which GCC would store in the caller's frame.
/// The same with options. A stream whose write_some() takes no write_options ignores them.
template <async_writer Stream>
[[nodiscard]] auto async_write_all(Stream& stream, const_buffer from, write_options options) {
    return detail::write_all(stream, from, options);
}

/// The same for several buffers with options.
template <async_writer Stream>
[[nodiscard]] auto async_write_all(Stream& stream, std::span<const const_buffer> from,
                                   write_options options) {
    return detail::write_all(stream, from, options);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
