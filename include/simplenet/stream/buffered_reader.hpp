#pragma once
// buffered_reader: lines and messages out of a stream, with what was read too much kept for the
// next call. Layer stream.

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

/// Bytes that were read and not yet consumed, in one piece.
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
    /// The bytes stay where they are until prepare().
    void consume(std::size_t count) noexcept { begin_ += count; }

    /// Space behind the bytes for about `wanted` more, and for what comes with them.
    ///
    /// Amortised linear: bytes move only into space that as many consumed bytes have left, or into
    /// twice as much. Where all were consumed, more than 64 KiB go back first.
    [[nodiscard]] mutable_buffer prepare(std::size_t wanted);
    void commit(std::size_t count) noexcept { end_ += count; }

    void enter() noexcept {
        check_idle();
        in_use_ = true;
    }
    void leave() noexcept { in_use_ = false; }
    void check_idle() const noexcept {
        SIMPLENET_EXPECTS(!in_use_, "a buffered_reader was used while a read is in flight on it");
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
    std::size_t grown_before_ = 0; // the capacity that went back: the next long one has it at once
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

/// The same for read_some(): past the buffer, when there is nothing in it.
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

/// More bytes than there were, none of them consumed.
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

} // namespace detail

inline namespace runtime {

/// Reads lines, messages and delimited text from a stream, and keeps what came too early.
///
/// Owns its stream (`buffered_reader reader{std::move(stream)}`) or borrows it
/// (`buffered_reader reader{stream}`, which is a `buffered_reader<tcp_stream&>`); writing goes on
/// through stream(), while nothing else reads from it. Views that it returns last until its next
/// call. A call that fails, for whatever reason, has consumed nothing: bytes that were read stay
/// for the next call, which may be a different one. One call at a time. May move, and be
/// destroyed, while none is in flight. Loop thread only.
///
/// A call whose bytes are there already returns without suspending, but for one in 64, so that a
/// peer that sends much at once does not keep the thread from others.
///
/// It holds one buffer: nothing before the first read, then 4 KiB, then as much as the longest line
/// or message needed, times at most two.
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
    /// @param limit  Bytes that a line may have, without its end.
    /// @return An awaitable of `result<std::string_view>`: a view of the buffer.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded`: the line is longer. It stays, so a call with a higher limit may
    ///   have it.
    /// - `errc::end_of_stream`: nothing more comes. What has no end of line is no line, since
    ///   nobody knows whether it is whole: peek() shows it.
    /// - Others as of the stream's read_some().
    /// @par Cancellation
    /// Nothing is lost, and the call can be repeated.
    /// @par Cost
    /// Of a line that is there a search, without suspension or allocation. Of others one coroutine
    /// beside the reads, whose frame is recycled.
    [[nodiscard]] search<std::string_view, detail::line_sought> read_line(std::size_t limit) {
        return {stream(), text(), detail::line_sought{limit}};
    }

    /// Reads through `delimiter`, and returns the bytes with it.
    ///
    /// @pre `delimiter` is not empty.
    /// @param delimiter  Copied; one of more than 15 characters to the heap.
    /// @param limit      Bytes through the delimiter, at most.
    /// @return An awaitable of `result<std::string_view>`: a view of the buffer.
    ///
    /// @par Errors
    /// As of read_line(); `errc::limit_exceeded` also if the delimiter is there, behind the limit.
    /// @par Cancellation
    /// As of read_line().
    [[nodiscard]] search<std::string_view, detail::delimiter_sought>
    read_until(std::string_view delimiter, std::size_t limit) {
        return {stream(), text(), detail::delimiter_sought{delimiter, limit}};
    }

    /// Reads `count` bytes; none of 0.
    ///
    /// The buffer grows as bytes come and not before, so `count` may be what a peer claims; still,
    /// check it against a limit, since all of it is going to be held.
    ///
    /// @return An awaitable of `result<std::span<const std::byte>>`: a view of the buffer.
    ///
    /// @par Errors
    /// - `errc::end_of_stream`: before that many; peek() shows those that came.
    /// - Others as of the stream's read_some().
    /// @par Cancellation
    /// As of read_line().
    [[nodiscard]] search<std::span<const std::byte>, detail::count_sought>
    read_exact(std::size_t count) {
        return {stream(), raw(), detail::count_sought{count}};
    }

    /// Reads at least one byte, as of the stream itself, but what is in the buffer comes first: so
    /// the reader is an async_reader.
    ///
    /// @pre `into` is not empty.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Cost
    /// Bytes are copied from the buffer, or read past it when it is empty.
    [[nodiscard]] detail::search_operation<stream_type, detail::pass_store, detail::count_sought>
    read_some(mutable_buffer into) {
        return {stream(), detail::pass_store{buffer_, into}, detail::count_sought{1}};
    }

    /// Reads at least one byte more into the buffer, and returns what peek() then shows: for
    /// parsers of their own.
    ///
    /// @return An awaitable of `result<std::span<const std::byte>>`: a view of the buffer.
    ///
    /// @par Errors
    /// As of the stream's read_some().
    [[nodiscard]] search<std::span<const std::byte>, detail::more_sought> fill() {
        return {stream(), raw(), detail::more_sought{buffer_.size()}};
    }

    /// What was read and not yet consumed; empty at first. Reads nothing.
    ///
    /// @pre No read is in flight.
    [[nodiscard]] std::span<const std::byte> peek() const noexcept {
        buffer_.check_idle();
        return buffer_.bytes();
    }

    /// Drops the first `count` bytes of what peek() shows.
    ///
    /// @pre `count <= peek().size()`, and no read is in flight.
    void consume(std::size_t count) noexcept {
        buffer_.check_idle();
        SIMPLENET_EXPECTS(count <= buffer_.size(), "consume() of more than there is");
        buffer_.consume(count);
    }

    /// The stream, for writing and closing. Who reads from it misses what is in the buffer.
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
