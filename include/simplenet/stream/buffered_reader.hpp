#pragma once
// buffered_reader: reads lines and messages from a stream, and keeps surplus bytes for the next
// call. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/stream/read_until.hpp>
#include <simplenet/stream/transfer.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// Bytes that were read but not yet consumed, in one contiguous piece.
class read_buffer {
public:
    read_buffer() noexcept = default;
    read_buffer(read_buffer&& other) noexcept { take(other); }
    read_buffer& operator=(read_buffer&& other) noexcept {
        if (this != &other) take(other);
        return *this;
    }
    ~read_buffer() = default;

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return {memory_.get() + begin_, end_ - begin_};
    }
    [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
    /// The bytes stay in place until prepare().
    void consume(std::size_t count) noexcept { begin_ += count; }

    /// Space after the bytes for about `wanted` more, and for bytes that arrive with them.
    ///
    /// Amortised linear: bytes are moved only to the front, if at least as many have been consumed,
    /// or into a buffer of twice the size. If all bytes are consumed, a buffer of more than 64 KiB
    /// is freed first.
    [[nodiscard]] mutable_buffer prepare(std::size_t wanted);
    void commit(std::size_t count) noexcept { end_ += count; }

    void enter() noexcept {
        check_idle();
        in_use_ = true;
    }
    void leave() noexcept { in_use_ = false; }
    void check_idle() const noexcept {
        SIMPLENET_EXPECTS(!in_use_, "a reader was used while a read is in flight on it");
    }

private:
    void take(read_buffer& other) noexcept {
        check_idle();
        other.check_idle();
        memory_ = std::move(other.memory_);
        capacity_ = std::exchange(other.capacity_, 0);
        grown_before_ = std::exchange(other.grown_before_, 0);
        begin_ = std::exchange(other.begin_, 0);
        end_ = std::exchange(other.end_, 0);
    }

    std::unique_ptr<std::byte[]> memory_; // none before the first read
    std::size_t capacity_ = 0;
    std::size_t grown_before_ = 0; // the freed capacity: the next long line gets it at once
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool in_use_ = false; // by a read in flight
};

/// A read_buffer as search_operation sees it.
template <class Value>
class buffer_store {
public:
    using value_type = Value;

    explicit buffer_store(read_buffer& buffer) noexcept
        : buffer_{&buffer} {}

    [[nodiscard]] std::string_view bytes() const noexcept {
        const auto held = buffer_->bytes();
        return {reinterpret_cast<const char*>(held.data()), held.size()};
    }
    [[nodiscard]] mutable_buffer prepare(std::size_t wanted) { return buffer_->prepare(wanted); }
    void commit(std::size_t count) noexcept { buffer_->commit(count); }
    [[nodiscard]] Value give(const search_verdict& found) const noexcept {
        const auto shown = buffer_->bytes().first(found.shown);
        buffer_->consume(found.length);
        if constexpr (std::same_as<Value, std::string_view>) {
            return {reinterpret_cast<const char*>(shown.data()), shown.size()};
        } else {
            return shown;
        }
    }
    void enter() noexcept { buffer_->enter(); }
    void leave() noexcept { buffer_->leave(); }

private:
    read_buffer* buffer_; // borrowed
};

/// The same for read_some(): bypasses the buffer when it is empty.
class pass_store {
public:
    using value_type = std::size_t;

    pass_store(read_buffer& buffer, mutable_buffer into) noexcept
        : buffer_{&buffer}
        , into_{into} {
        SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
    }

    [[nodiscard]] std::string_view bytes() const noexcept;
    [[nodiscard]] mutable_buffer prepare(std::size_t) const noexcept { return into_; }
    void commit(std::size_t count) noexcept { passed_ = count; }
    [[nodiscard]] std::size_t give(const search_verdict&) const noexcept;
    void enter() noexcept { buffer_->enter(); }
    void leave() noexcept { buffer_->leave(); }

private:
    read_buffer* buffer_; // borrowed
    mutable_buffer into_;
    std::size_t passed_ = 0;
};

/// Searches for at least one more byte; consumes nothing.
class more_sought {
public:
    explicit more_sought(std::size_t had) noexcept
        : had_{had} {}
    [[nodiscard]] search_verdict look(std::string_view bytes) const noexcept {
        return {.over = bytes.size() > had_, .error = {}, .length = 0, .shown = bytes.size()};
    }
    [[nodiscard]] static std::size_t wanted(std::size_t) noexcept { return 1; }

private:
    std::size_t had_;
};

/// readable() of a reader.
template <class Stream>
task<result<>> wait_for_bytes(const read_buffer& buffer, Stream& stream) {
    buffer.check_idle();
    if (buffer.size() != 0) co_return co_await refusal{};
    co_return co_await stream.readable();
}

} // namespace detail

inline namespace runtime {

/// Reads lines, messages and delimited text from a stream, and keeps bytes that arrive early.
///
/// Owns its stream (`buffered_reader reader{std::move(stream)}`) or borrows it (`buffered_reader
/// reader{stream}`, which is a `buffered_reader<tcp_stream&>`). Write through stream(), but read
/// only through the reader. Returned views are valid until the next call. A call that fails, for
/// whatever reason, consumes nothing: bytes that were read stay for the next call, which may be a
/// different one. One call at a time. May be moved and destroyed while no call is in flight. Loop
/// thread only.
///
/// A call whose bytes are already buffered returns without suspending, except for every 64th, so
/// that a peer that sends much at once does not monopolise the thread.
///
/// It holds one buffer: none before the first read, then 4 KiB, then at most twice what the longest
/// line or message needed.
///
/// @par Example
/// @snippet streams.cpp lines
template <class S>
    requires async_reader<std::remove_reference_t<S>>
class buffered_reader {
    using stream_type = std::remove_reference_t<S>;
    template <class Value, class Sought>
    using search = detail::search_operation<stream_type, detail::buffer_store<Value>, Sought>;

public:
    /// Owns the stream, or borrows it if `S` is a reference.
    explicit buffered_reader(S stream) noexcept(std::is_nothrow_move_constructible_v<S>)
        : stream_{std::forward<S>(stream)} {}

    /// Reads a line, and returns it without its end, which is `\n` or `\r\n`.
    ///
    /// @param limit  The largest length of a line in bytes, without its end.
    /// @return An awaitable of `result<std::string_view>`: a view of the buffer.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded`: the line is longer. It stays buffered, so a call with a higher
    ///   limit may return it.
    /// - `errc::end_of_stream`: the stream has ended. Bytes without an end of line are not returned
    ///   as a line, because it may be incomplete: peek() shows them.
    /// - Any other error of the stream's read_some().
    /// @par Cancellation
    /// Nothing is lost, and the call can be repeated.
    /// @par Cost
    /// For a line that is already buffered a search, without suspension or allocation. Otherwise
    /// one coroutine in addition to the reads, whose frame is recycled.
    [[nodiscard]] search<std::string_view, detail::line_sought> read_line(std::size_t limit) {
        return {stream(), text(), detail::line_sought{limit}};
    }

    /// Reads up to and including `delimiter`, and returns these bytes.
    ///
    /// @pre `delimiter` is not empty.
    /// @param delimiter  Copied; to the heap if it has more than 15 characters.
    /// @param limit      The largest length in bytes, including the delimiter.
    /// @return An awaitable of `result<std::string_view>`: a view of the buffer.
    ///
    /// @par Errors
    /// As for read_line(); `errc::limit_exceeded` also if the delimiter is buffered, but beyond the
    /// limit.
    /// @par Cancellation
    /// As for read_line().
    [[nodiscard]] search<std::string_view, detail::delimiter_sought>
    read_until(std::string_view delimiter, std::size_t limit) {
        return {stream(), text(), detail::delimiter_sought{delimiter, limit}};
    }

    /// Reads `count` bytes; 0 succeeds without a read.
    ///
    /// The buffer grows only as bytes arrive, so `count` may come from a peer. Still check it
    /// against a limit, because the buffer will hold all of these bytes.
    ///
    /// @return An awaitable of `result<std::span<const std::byte>>`: a view of the buffer.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: the stream ended before that many; peek() shows those that arrived.
    /// - Any other error of the stream's read_some().
    /// @par Cancellation
    /// As for read_line().
    [[nodiscard]] search<std::span<const std::byte>, detail::count_sought>
    read_exact(std::size_t count) {
        return {stream(), raw(), detail::count_sought{count}};
    }

    /// Reads at least one byte, first from the buffer, then from the stream. This makes the reader
    /// an async_reader.
    ///
    /// @pre `into` is not empty.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Cost
    /// Bytes are copied from the buffer; if it is empty, they are read directly into `into`.
    [[nodiscard]] detail::search_operation<stream_type, detail::pass_store, detail::count_sought>
    read_some(mutable_buffer into) {
        return {stream(), detail::pass_store{buffer_, into}, detail::count_sought{1}};
    }

    /// Waits until peek() shows something or the stream has something, bytes, the end or an error,
    /// and takes nothing.
    ///
    /// For a reader that waits for its next message: no memory is held meanwhile but that of the
    /// buffer, and a wait that may lose against another one cannot lose bytes. The message need not
    /// be complete then.
    ///
    /// @pre No read is in flight.
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// Those of the stream's readable().
    /// @par Cost
    /// One coroutine, whose frame is recycled.
    [[nodiscard]] task<result<>> readable()
        requires ready_reader<stream_type>
    {
        return detail::wait_for_bytes(buffer_, stream());
    }

    /// Reads at least one more byte into the buffer, and returns what peek() then shows. For
    /// callers with their own parser.
    ///
    /// @return An awaitable of `result<std::span<const std::byte>>`: a view of the buffer.
    ///
    /// @par Errors
    /// Those of the stream's read_some().
    [[nodiscard]] search<std::span<const std::byte>, detail::more_sought> fill() {
        return {stream(), raw(), detail::more_sought{buffer_.size()}};
    }

    /// The bytes that were read but not yet consumed; empty at first. Reads nothing.
    ///
    /// @pre No read is in flight.
    [[nodiscard]] std::span<const std::byte> peek() const noexcept {
        buffer_.check_idle();
        return buffer_.bytes();
    }

    /// Drops the first `count` bytes of peek().
    ///
    /// @pre `count <= peek().size()`, and no read is in flight.
    void consume(std::size_t count) noexcept {
        buffer_.check_idle();
        SIMPLENET_EXPECTS(count <= buffer_.size(), "consume() of more than there is");
        buffer_.consume(count);
    }

    /// The stream, for writing and closing. A read from it would miss the buffered bytes.
    [[nodiscard]] stream_type& stream() noexcept { return stream_; }

private:
    [[nodiscard]] detail::buffer_store<std::string_view> text() noexcept {
        return detail::buffer_store<std::string_view>{buffer_};
    }
    [[nodiscard]] detail::buffer_store<std::span<const std::byte>> raw() noexcept {
        return detail::buffer_store<std::span<const std::byte>>{buffer_};
    }

    S stream_;
    detail::read_buffer buffer_;
};

template <class S>
buffered_reader(S&&) -> buffered_reader<S>;

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
