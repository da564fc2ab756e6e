#pragma once
// async_copy and async_copy_bidirectional: everything from one stream to another. Layer stream.

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <expected>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// The bytes that async_copy_bidirectional() has moved.
struct copy_counts {
    std::size_t a_to_b = 0; // read from a and taken by b
    std::size_t b_to_a = 0;

    friend bool operator==(const copy_counts&, const copy_counts&) noexcept = default;
};

/// Why async_copy_bidirectional() ended early, and how much had moved by then.
struct copy_error {
    std::error_code code;
    copy_counts counts{};

    // NOLINTNEXTLINE(google-explicit-constructor): as transfer_error.
    operator std::error_code() const noexcept { return code; }
    /// The meaning of `code`, for people.
    [[nodiscard]] std::string message() const { return code.message(); }

    friend bool operator==(const copy_error&, const copy_error&) noexcept = default;
    friend bool operator==(const copy_error& left, const std::error_code& right) noexcept {
        return left.code == right;
    }
    friend bool operator==(const copy_error& left, const std::error_condition& right) noexcept {
        return left.code == right;
    }
};

} // namespace runtime

namespace detail {

/// Memory for bytes in transit, held only while there are any. The thread keeps one spare block.
// 128 KiB: with 16 KiB a transfer costs twice the CPU time, and larger blocks do not save any
// (docs/development/transfer-figures.md).
class copy_block {
public:
    static constexpr std::size_t capacity = std::size_t{128} * 1024;

    copy_block();
    copy_block(const copy_block&) = delete;
    copy_block& operator=(const copy_block&) = delete;
    ~copy_block() { give_back(); }
    /// Gives the memory back before the destructor does.
    void give_back() noexcept;

    [[nodiscard]] mutable_buffer room() const noexcept {
        return mutable_buffer{memory_.get(), capacity}.subspan(size_);
    }
    [[nodiscard]] const_buffer content() const noexcept { return {memory_.get(), size_}; }
    void added(std::size_t count) noexcept { size_ += count; }
    void clear() noexcept { size_ = 0; }

private:
    std::unique_ptr<std::byte[]> memory_;
    std::size_t size_ = 0; // bytes in use
};

/// A pipe through which the kernel moves pages instead of copying bytes, for large amounts. The
/// thread keeps one empty spare pipe.
class copy_pipe {
public:
    static constexpr std::size_t capacity = std::size_t{1024} * 1024;
    /// A pipe pays off from this many bytes at once.
    static constexpr std::size_t threshold = std::size_t{32} * 1024;
    /// The limit of pipes in the process, 128 descriptors and 64 MiB of the kernel, because a peer
    /// that does not read occupies a pipe and its contents. Other copies use blocks.
    static constexpr int most = 64;

    copy_pipe() noexcept;
    copy_pipe(const copy_pipe&) = delete;
    copy_pipe& operator=(const copy_pipe&) = delete;
    ~copy_pipe();

    /// False if the process has `most` of them, if too few descriptors are free, or if the pipes of
    /// this user have grown too large.
    [[nodiscard]] bool usable() const noexcept { return static_cast<bool>(in_); }
    [[nodiscard]] int in() const noexcept { return in_.get(); }
    [[nodiscard]] int out() const noexcept { return out_.get(); }
    void holds(std::size_t count) noexcept { held_ = count; }
    void taken(std::size_t count) noexcept { held_ -= count; }
    [[nodiscard]] std::size_t held() const noexcept { return held_; }
    /// Reads from the pipe as much as `into` has room for.
    [[nodiscard]] result<std::size_t> read(mutable_buffer into) noexcept;

private:
    unique_fd in_;
    unique_fd out_;
    std::size_t held_ = 0; // bytes
};

template <class Reader, class Writer>
concept splices_to = requires(Reader& from, Writer& to) {
    stream_access::splice_ready(from, 0, std::size_t{});
    stream_access::send_pipe_operation(to, 0, std::size_t{});
};

/// Writes the contents of the pipe if `to` refuses splice(2).
template <class Writer>
task<result<>> empty_pipe(copy_pipe& pipe, Writer& to, std::size_t& moved) {
    copy_block block;
    while (pipe.held() != 0) {
        block.clear();
        const result<std::size_t> count = pipe.read(block.room());
        if (!count) co_return fail(count);
        block.added(*count);
        const transfer_result written = co_await async_write_all(to, block.content());
        moved += written ? *written : written.error().transferred;
        if (!written) co_return fail(written);
        pipe.taken(*count);
    }
    co_return result<>{};
}

/// Moves bytes until `from` has no more, including those that arrive meanwhile.
// Bytes that an error or a stop leaves in the pipe are lost, as those in a block are: they are
// dropped with the pipe.
template <class Reader, class Writer>
task<result<>> move_through_pipe(Reader& from, Writer& to, std::size_t& moved) {
    copy_pipe pipe;
    while (pipe.usable()) {
        const result<std::size_t> count =
            stream_access::splice_ready(from, pipe.in(), copy_pipe::capacity);
        if (!count) {
            if (count.error() == std::errc::operation_would_block) break;
            co_return fail(count);
        }
        pipe.holds(*count);
        const transfer_result written =
            co_await stream_access::send_pipe_operation(to, pipe.out(), *count);
        const std::size_t taken = written ? *written : written.error().transferred;
        moved += taken;
        pipe.taken(taken);
        if (written) continue;
        if (!is_refusal(written.error().code)) co_return fail(written);
        const result<> emptied = co_await empty_pipe(pipe, to, moved);
        if (!emptied) co_return emptied;
    }
    co_return result<>{};
}

/// Copies through the pipe as long as large amounts arrive. Small pieces, the end and errors are
/// left to receive().
// It waits without the pipe, so that other copies can use it, and without receive(): on io_uring
// receive() would make the kernel receive ahead, and the pipe would have to wait for that to end.
template <class Reader, class Writer>
task<result<>> copy_spliced(Reader& from, Writer& to, std::size_t& moved) {
    for (;;) {
        const std::size_t before = moved;
        const result<> spliced = co_await move_through_pipe(from, to, moved);
        if (!spliced || moved - before < copy_pipe::threshold) co_return spliced;
        const auto bytes = co_await from.readable();
        if (!bytes) co_return fail(bytes);
    }
}

/// Has receive(), which waits without memory and ends with a lease.
template <class Stream>
concept leasing_reader = requires(Stream& stream) {
    { stream.receive() } -> awaitable;
    requires requires(typename await_result<decltype(stream.receive())>::value_type lease) {
        const_buffer{lease};
        lease.release();
    };
};

/// Blocks that one copy moves before it yields to other tasks of the loop.
inline constexpr int blocks_per_turn = 8;

/// Fills the rest of `block` with bytes that are there already. Returns the error with which a read
/// failed, but not operation_would_block.
template <class Reader>
std::error_code fill_from_ready(Reader& from, copy_block& block) {
    if constexpr (requires { stream_access::read_ready(from, block.room()); }) {
        while (!block.room().empty()) {
            const result<std::size_t> count = stream_access::read_ready(from, block.room());
            if (!count) {
                if (count.error() == std::errc::operation_would_block) break;
                return count.error();
            }
            block.added(*count);
        }
    }
    return {};
}

/// Copies to the end of the stream, which is not an error. `moved` is always exact.
// A lease is not held while the write waits: receive buffers are scarce, and peers that do not read
// would take them from all other streams of the loop.
template <class Reader, class Writer>
task<result<>> copy_leased(Reader& from, Writer& to, std::size_t& moved) {
    for (int blocks = 1;; ++blocks) {
        auto lease = co_await from.receive();
        if (!lease) {
            if (lease.error() == errc::end_of_stream) co_return result<>{};
            co_return fail(lease.error());
        }
        const_buffer rest = *lease;
        copy_block block;
        std::error_code end;
        for (bool first = true; first || block.content().size() == copy_block::capacity; ++blocks) {
            block.clear();
            if (!rest.empty()) {
                const std::size_t size = std::min(rest.size(), copy_block::capacity);
                std::memcpy(block.room().data(), rest.data(), size);
                block.added(size);
                rest = rest.subspan(size);
            }
            if (rest.empty()) {
                if (first) lease->release();
                first = false;
                end = fill_from_ready(from, block);
            }
            const transfer_result written = co_await async_write_all(to, block.content());
            moved += written ? *written : written.error().transferred;
            if (!written) co_return fail(written.error().code);
            if (end == errc::end_of_stream) co_return result<>{};
            if (end) co_return fail(end);
            if constexpr (splices_to<Reader, Writer>) {
                if (rest.empty() && block.content().size() >= copy_pipe::threshold) {
                    block.give_back();
                    const result<> spliced = co_await copy_spliced(from, to, moved);
                    if (!spliced) co_return spliced;
                    break;
                }
            }
            if (blocks % blocks_per_turn == 0) co_await yield();
        }
    }
}

template <class Reader, class Writer>
task<result<>> copy_buffered(Reader& from, Writer& to, std::size_t& moved) {
    copy_block block;
    for (int blocks = 1;; ++blocks) {
        block.clear();
        const result<std::size_t> count = co_await from.read_some(block.room());
        if (!count) {
            if (count.error() == errc::end_of_stream) co_return result<>{};
            co_return fail(count);
        }
        block.added(*count);
        const transfer_result written = co_await async_write_all(to, block.content());
        moved += written ? *written : written.error().transferred;
        if (!written) co_return fail(written.error().code);
        if (blocks % blocks_per_turn == 0) co_await yield();
    }
}

template <class Reader, class Writer>
task<result<>> copy_into(Reader& from, Writer& to, std::size_t& moved) {
    if constexpr (leasing_reader<Reader>) {
        return copy_leased(from, to, moved);
    } else {
        return copy_buffered(from, to, moved);
    }
}

template <class Reader, class Writer>
task<transfer_result> copy_all(Reader& from, Writer& to) {
    std::size_t moved = 0;
    const result<> ended = co_await copy_into(from, to, moved);
    if (!ended) co_return std::unexpected{transfer_error{ended.error(), moved}};
    co_return moved;
}

/// Copies one direction, and passes its end on.
template <class Reader, class Writer>
task<result<>> copy_and_end(Reader& from, Writer& to, std::size_t& moved) {
    const result<> copied = co_await copy_into(from, to, moved);
    if (!copied) co_return copied;
    co_return co_await async_shutdown_write(to);
}

template <class A, class B>
task<std::expected<copy_counts, copy_error>> copy_both_ways(A& a, B& b) {
    copy_counts counts;
    const auto ended =
        co_await gather(copy_and_end(a, b, counts.a_to_b), copy_and_end(b, a, counts.b_to_a));
    if (!ended) co_return std::unexpected{copy_error{ended.error(), counts}};
    co_return counts;
}

template <class Stream>
concept copied_both_ways = async_reader<Stream> && async_writer<Stream> && half_closable<Stream>;

} // namespace detail

inline namespace runtime {

/// Copies all bytes of `from` to `to`, until the end of the stream.
///
/// The end is not passed on: shut `to` down if you want that. Reads at most 1 MiB ahead, so a slow
/// `to` slows `from` down.
///
/// @pre No other read of `from` and no other write to `to` is in flight; both outlive the await.
/// @return The number of bytes that `to` took.
///
/// @par Errors
/// Those of reading from `from` and writing to `to`, except for the end of the stream.
/// `transferred` is the exact number of bytes that `to` took. Bytes read beyond that are lost, at
/// most 1 MiB.
/// @par Cancellation
/// A stop while it waits for `from` loses nothing. A stop while it waits for `to` has the same
/// effect as an error.
/// @par Cost
/// If `from` has receive(), as the streams of the runtime have, waiting for it needs no memory;
/// otherwise the copy holds 128 KiB all the time. Between streams of the runtime the kernel moves
/// large amounts itself (splice(2)), unless that is refused. A copy that waits for `to` holds a
/// block of 128 KiB, or a pipe: two descriptors and up to 1 MiB of the kernel, for at most 64
/// copies of the process at a time. Each thread that has copied keeps a spare one of each.
/// @par Example
/// @snippet writing.cpp copy
template <async_reader Reader, async_writer Writer>
[[nodiscard]] task<transfer_result> async_copy(Reader& from, Writer& to) {
    return detail::copy_all(from, to);
}

/// Copies between `a` and `b` in both directions until both have ended: a proxy.
///
/// The end of one direction is passed on with shutdown_write(), and the other direction continues.
/// An error in one stops and joins the other. Closes neither stream.
///
/// @pre No other operation of `a` and `b` is in flight; both outlive the await.
/// @return The number of bytes that each side took.
///
/// @par Errors
/// The first error of either direction; `counts` has the exact number of bytes that each side took.
/// @par Cancellation
/// As for async_copy(), in both directions.
/// @par Cost
/// As for async_copy(): two idle streams of the runtime hold no memory.
/// @par Example
/// @snippet port_forward.cpp forward
template <detail::copied_both_ways A, detail::copied_both_ways B>
[[nodiscard]] task<std::expected<copy_counts, copy_error>> async_copy_bidirectional(A& a, B& b) {
    return detail::copy_both_ways(a, b);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
