#pragma once
// frame_reader: reads messages that are preceded by their length. Layer stream.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/frame_format.hpp>
#include <simplenet/stream/read_until.hpp>
#include <simplenet/stream/transfer.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// A whole frame; shows its body. See delimiter_sought.
class frame_sought {
public:
    frame_sought(frame_format format, std::size_t limit) noexcept
        : format_{format}
        , limit_{limit} {}
    [[nodiscard]] search_verdict look(std::span<const std::byte> bytes) noexcept;
    [[nodiscard]] search_verdict look(std::string_view bytes) noexcept {
        return look(std::as_bytes(std::span{bytes}));
    }
    [[nodiscard]] std::size_t wanted(std::size_t) const noexcept { return missing_; }

private:
    frame_format format_;
    std::size_t limit_;
    std::size_t whole_ = 0; // the prefix and the body; 0 before the prefix is complete
    std::size_t body_ = 0;
    std::size_t missing_ = 1;
};

/// A read_buffer as search_operation sees it: of the bytes found, it returns the last ones.
class frame_store : public buffer_store<std::span<const std::byte>> {
public:
    explicit frame_store(read_buffer& buffer) noexcept
        : buffer_store{buffer} {}

    [[nodiscard]] std::span<const std::byte> give(search_verdict found) const noexcept {
        const std::size_t body = std::exchange(found.shown, found.length);
        return buffer_store::give(found).last(body);
    }
};

} // namespace detail

inline namespace runtime {

/// Reads messages, each of which is preceded by its length, and keeps bytes that arrive early.
///
/// Owns its stream (`frame_reader reader{std::move(stream)}`) or borrows it (`frame_reader
/// reader{stream}`, which is a `frame_reader<tcp_stream&>`). Write through stream(), for example
/// with a frame_writer that borrows it, but read only through the reader. Returned views are valid
/// until the next call. A call that fails, for whatever reason, consumes nothing: bytes that were
/// read stay for the next call. One call at a time. May be moved and destroyed while no call is in
/// flight. Loop thread only.
///
/// It holds one buffer: none before the first read, then 4 KiB, then at most twice what the longest
/// frame needed. The buffer grows as bytes arrive, so a peer cannot occupy memory by announcing a
/// long frame.
///
/// @par Example
/// @snippet streams.cpp frames
template <class S>
    requires async_reader<std::remove_reference_t<S>>
class frame_reader {
    using stream_type = std::remove_reference_t<S>;

public:
    /// Owns the stream, or borrows it if `S` is a reference.
    explicit frame_reader(S stream, frame_format format = {}) noexcept(
        std::is_nothrow_move_constructible_v<S>)
        : stream_{std::forward<S>(stream)}
        , format_{format} {}

    /// Reads a frame, and returns its body.
    ///
    /// @param limit  The largest length of a body in bytes. A frame may have an empty body.
    /// @return An awaitable of `result<std::span<const std::byte>>`: a view of the buffer.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded`: the prefix announces a longer body. The frame stays in front, so a
    ///   call with a higher limit may return it.
    /// - `errc::end_of_stream`: the stream has ended. If peek() is empty, it ended between two
    ///   frames; otherwise peek() shows the beginning of the frame that was cut off.
    /// - `std::errc::bad_message`: a varint has more than 10 bytes or 64 bits. The stream cannot be
    ///   understood from here on; close it.
    /// - Any other error of the stream's read_some().
    /// @par Cancellation
    /// Nothing is lost, and the call can be repeated.
    /// @par Cost
    /// For a frame that is already buffered no suspension (but for every 64th, so that a peer that
    /// sends much at once does not monopolise the thread), and no allocation. One read may bring
    /// many frames. Otherwise one coroutine in addition to the reads, whose frame is recycled.
    [[nodiscard]] detail::search_operation<stream_type, detail::frame_store, detail::frame_sought>
    read_frame(std::size_t limit) {
        return {stream(), detail::frame_store{buffer_}, detail::frame_sought{format_, limit}};
    }

    /// Reads at least one byte of whatever follows the last frame, first from the buffer, then from
    /// the stream. This makes the reader an async_reader, for connections that change protocol.
    ///
    /// @pre `into` is not empty.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    [[nodiscard]] detail::search_operation<stream_type, detail::pass_store, detail::count_sought>
    read_some(mutable_buffer into) {
        return {stream(), detail::pass_store{buffer_, into}, detail::count_sought{1}};
    }

    /// Waits until something is there, as buffered_reader::readable().
    [[nodiscard]] task<result<>> readable()
        requires ready_reader<stream_type>
    {
        return detail::wait_for_bytes(buffer_, stream());
    }

    /// The bytes that were read but not yet consumed, prefixes included. Reads nothing.
    ///
    /// @pre No read is in flight.
    [[nodiscard]] std::span<const std::byte> peek() const noexcept {
        buffer_.check_idle();
        return buffer_.bytes();
    }

    /// The stream, for writing and closing. A read from it would miss the buffered bytes.
    [[nodiscard]] stream_type& stream() noexcept { return stream_; }

private:
    S stream_;
    frame_format format_;
    detail::read_buffer buffer_;
};

template <class S>
frame_reader(S&&, frame_format = {}) -> frame_reader<S>;

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
