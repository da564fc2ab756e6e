#pragma once
// frame_writer: writes messages preceded by their length. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/frame_format.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Writes messages, each preceded by its length, which a frame_reader of the same format reads.
///
/// Owns its stream (`frame_writer writer{std::move(stream)}`) or borrows it (`frame_writer
/// writer{stream}`, which is a `frame_writer<tcp_stream&>`). One call at a time; tasks that share a
/// writer need an async_mutex. It buffers nothing. May be moved and destroyed while no call is in
/// flight. Loop thread only.
///
/// @par Example
/// @snippet streams.cpp frames
template <class S>
    requires async_writer<std::remove_reference_t<S>>
class frame_writer {
    using stream_type = std::remove_reference_t<S>;

public:
    /// Owns the stream, or borrows it if `S` is a reference.
    explicit frame_writer(S stream, frame_format format = {}) noexcept(
        std::is_nothrow_move_constructible_v<S>)
        : stream_{std::forward<S>(stream)}
        , format_{format} {}
    frame_writer(frame_writer&& other) noexcept(std::is_nothrow_move_constructible_v<S>)
        : stream_{(other.check_idle(), std::forward<S>(other.stream_))}
        , format_{other.format_}
        , cut_{other.cut_} {}
    frame_writer& operator=(frame_writer&&) = delete;
    ~frame_writer() { check_idle(); }

    /// Writes a frame with this body.
    ///
    /// @pre No other write is in flight on the writer or its stream; the writer outlives the await.
    /// @param body  Borrowed until the await returns. May be empty.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded`: the prefix cannot express the length; nothing was written.
    /// - `std::errc::broken_pipe`: an earlier call failed in the middle of its frame, or the peer
    ///   is gone. The peer would take the next frame for the rest of the unfinished one, so nothing
    ///   is written; close the stream.
    /// - Any other error of the stream's write_some().
    /// @par Cancellation
    /// If no byte was written, the call can be repeated. A stop or a deadline in the middle of a
    /// frame ends the writer: later calls fail with `std::errc::broken_pipe`. is_cut() tells.
    /// @par Cost
    /// One write for the prefix and the body together; two if the stream takes only one buffer at a
    /// time. One coroutine, whose frame is recycled.
    [[nodiscard]] task<result<>> write_frame(const_buffer body) {
        const claim claimed{*this};
        if (const std::error_code refused = refusal(body.size())) co_return fail(refused);
        const detail::frame_head head = detail::encode_prefix(body.size(), format_);
        const std::array<const_buffer, 2> buffers{prefix_of(head), body};
        co_return ended(co_await async_write_all(stream_, std::span<const const_buffer>{buffers}));
    }
    /// The same for a body in several pieces, one after the other.
    ///
    /// @param body  Borrowed until the await returns, including the array of buffers.
    [[nodiscard]] task<result<>> write_frame(std::span<const const_buffer> body) {
        const claim claimed{*this};
        std::uint64_t length = 0;
        for (const const_buffer& each : body)
            length += each.size();
        if (const std::error_code refused = refusal(length)) co_return fail(refused);
        const detail::frame_head head = detail::encode_prefix(length, format_);
        // No conditional expression and no temporaries: see docs/usage/gcc-12.md.
        std::array<const_buffer, 8> few;
        std::vector<const_buffer> many;
        std::span<const_buffer> buffers{few};
        if (body.size() >= few.size()) {
            many.resize(body.size() + 1);
            buffers = many;
        }
        buffers = buffers.first(body.size() + 1);
        buffers[0] = prefix_of(head);
        std::copy(body.begin(), body.end(), buffers.begin() + 1);
        co_return ended(co_await async_write_all(stream_, std::span<const const_buffer>{buffers}));
    }

    /// Whether a call failed in the middle of its frame, so that no further frame can be written.
    [[nodiscard]] bool is_cut() const noexcept { return cut_; }

    /// The stream, for reading and closing. Writing through it is allowed between two frames.
    [[nodiscard]] stream_type& stream() noexcept { return stream_; }

private:
    /// The writer is in use as long as this exists.
    class claim {
    public:
        explicit claim(frame_writer& of) noexcept
            : writer_{&of} {
            of.check_idle();
            of.in_use_ = true;
        }
        claim(const claim&) = delete;
        claim& operator=(const claim&) = delete;
        ~claim() { writer_->in_use_ = false; }

    private:
        frame_writer* writer_; // borrowed
    };

    [[nodiscard]] static const_buffer prefix_of(const detail::frame_head& head) noexcept {
        return std::span{head.bytes}.first(head.size);
    }
    [[nodiscard]] std::error_code refusal(std::uint64_t length) const noexcept {
        if (cut_) return std::make_error_code(std::errc::broken_pipe);
        if (length > detail::longest_frame(format_.prefix)) return errc::limit_exceeded;
        return {};
    }
    [[nodiscard]] result<> ended(const transfer_result& written) noexcept {
        if (written) return {};
        cut_ = written.error().transferred != 0;
        return fail(written);
    }
    void check_idle() const noexcept {
        SIMPLENET_EXPECTS(!in_use_, "a frame_writer was used while a write is in flight on it");
    }

    S stream_;
    frame_format format_;
    bool cut_ = false;
    bool in_use_ = false; // by a write in flight
};

template <class S>
frame_writer(S&&, frame_format = {}) -> frame_writer<S>;

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
