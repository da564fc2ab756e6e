#pragma once
// split(): divides a stream into a reading and a writing half with different owners; and
// async_shutdown_write(), which works on every stream. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/send_file_options.hpp>
#include <simplenet/stream/transfer.hpp>

#include <concepts>
#include <coroutine>
#include <span>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// A `shutdown_write()` that has finished when it returns.
template <class Stream>
concept shuts_down_at_once = requires(Stream& stream) {
    { stream.shutdown_write() } -> std::convertible_to<result<>>;
};

/// One that has to be awaited, because telling the peer takes a write.
template <class Stream>
concept shuts_down_in_time = !shuts_down_at_once<Stream> && requires(Stream& stream) {
    { stream.shutdown_write() } -> awaitable;
    requires std::same_as<await_result<decltype(stream.shutdown_write())>, result<>>;
};

/// Can tell the peer that nothing more will come.
template <class Stream>
concept half_closable = shuts_down_at_once<Stream> || shuts_down_in_time<Stream>;

/// Awaitable of async_shutdown_write() on streams where it does not wait. Lazy nevertheless.
template <class Stream>
class [[nodiscard]] shutdown_operation {
public:
    explicit shutdown_operation(Stream& stream) noexcept
        : stream_{&stream} {}

    static bool await_ready() noexcept { return true; }
    static bool await_suspend(std::coroutine_handle<>) noexcept { return false; }
    result<> await_resume() const { return stream_->shutdown_write(); }

private:
    Stream* stream_; // borrowed
};

/// The stream of two halves. Owned by both; the last one frees it.
// Counted by hand: a shared_ptr would count with atomics in a program that has threads.
template <class S>
struct shared_stream {
    explicit shared_stream(S&& from) noexcept(std::is_nothrow_move_constructible_v<S>)
        : stream{std::move(from)} {}

    S stream;
    unsigned halves = 2;
};

struct split_access;

} // namespace detail

inline namespace runtime {

/// Tells the peer that nothing more will come, on any stream that can; reading continues.
///
/// @pre No write is in flight on `stream`, which outlives the await.
/// @return An awaitable of `result<>`.
///
/// @par Errors
/// Those of the stream's shutdown_write(): on a socket `std::errc::not_connected` if the connection
/// is gone, `std::errc::bad_file_descriptor` if it is already closed.
/// @par Cancellation
/// On a socket it does not wait, so a stop does not prevent it. Other streams may have to write
/// something first, which can be stopped.
template <detail::half_closable Stream>
[[nodiscard]] auto async_shutdown_write(Stream& stream) {
    if constexpr (detail::shuts_down_at_once<Stream>) {
        return detail::shutdown_operation<Stream>{stream};
    } else {
        return stream.shutdown_write();
    }
}

/// Base of read_half and write_half: a handle to the stream that they share.
template <class S>
class stream_half {
public:
    /// The whole stream, for its options and its addresses.
    ///
    /// @pre Not moved from.
    [[nodiscard]] S& stream() const noexcept {
        SIMPLENET_EXPECTS(shared_ != nullptr, "a half of a stream that was moved from");
        return shared_->stream;
    }

    /// Closes the whole stream, including the other half.
    ///
    /// @pre Not moved from.
    void close() noexcept
        requires requires(S& whole) { whole.close(); }
    {
        stream().close();
    }

protected:
    friend detail::split_access;
    explicit stream_half(detail::shared_stream<S>& shared) noexcept
        : shared_{&shared} {}
    stream_half(stream_half&& other) noexcept
        : shared_{std::exchange(other.shared_, nullptr)} {}
    stream_half& operator=(stream_half&& other) noexcept {
        if (this != &other) {
            drop();
            shared_ = std::exchange(other.shared_, nullptr);
        }
        return *this;
    }
    ~stream_half() { drop(); }

    [[nodiscard]] bool is_last() const noexcept {
        return shared_ == nullptr || shared_->halves == 1;
    }

private:
    void drop() noexcept {
        detail::shared_stream<S>* const shared = std::exchange(shared_, nullptr);
        if (shared != nullptr && --shared->halves == 0) delete shared;
    }

    detail::shared_stream<S>* shared_; // null only after a move
};

/// The half of a stream that reads: an async_reader.
///
/// Owns the stream together with the write_half. Destroying it does not affect the other half; the
/// last of the two destroys the stream, which closes it. May be moved with reads in flight. Loop
/// thread only.
template <class S>
class read_half : public stream_half<S> {
public:
    /// read_some() of the stream.
    [[nodiscard]] auto read_some(mutable_buffer into) const {
        return this->stream().read_some(into);
    }
    /// receive() of the stream, if it has one.
    [[nodiscard]] auto receive() const
        requires requires(S& whole) { whole.receive(); }
    {
        return this->stream().receive();
    }

    /// try_receive() and readable() of the stream, if it has them.
    [[nodiscard]] auto try_receive() const
        requires requires(S& whole) { whole.try_receive(); }
    {
        return this->stream().try_receive();
    }
    [[nodiscard]] auto readable() const
        requires requires(S& whole) { whole.readable(); }
    {
        return this->stream().readable();
    }

private:
    friend detail::split_access;
    using stream_half<S>::stream_half;

    friend detail::stream_access;
    [[nodiscard]] auto read_ready(mutable_buffer into) const
        requires requires(S& whole) { detail::stream_access::read_ready(whole, into); }
    {
        return detail::stream_access::read_ready(this->stream(), into);
    }
    [[nodiscard]] auto read_exact_operation(mutable_buffer into) const
        requires requires(S& whole) { detail::stream_access::read_exact_operation(whole, into); }
    {
        return detail::stream_access::read_exact_operation(this->stream(), into);
    }
};

/// The half of a stream that writes: an async_writer.
///
/// Owns the stream together with the read_half. Destroying it while the other half exists tells the
/// peer that nothing more will come, as shutdown_write() does; a write in flight then fails. On a
/// stream whose shutdown has to be awaited (TLS, any_stream) it does not: await
/// async_shutdown_write() before. May be moved with writes in flight. Loop thread only.
template <class S>
class write_half : public stream_half<S> {
public:
    write_half(write_half&&) noexcept = default;
    write_half& operator=(write_half&& other) noexcept {
        if (this != &other) {
            end();
            stream_half<S>::operator=(std::move(other));
        }
        return *this;
    }
    ~write_half() { end(); }

    /// write_some() of the stream, which may ignore the options.
    [[nodiscard]] auto write_some(const_buffer from, write_options options = {}) const {
        return detail::write_some_with(this->stream(), from, options);
    }
    /// The same for several buffers, if the stream accepts them.
    [[nodiscard]] auto write_some(std::span<const const_buffer> from,
                                  write_options options = {}) const
        requires requires(S& whole) { whole.write_some(from); }
    {
        return detail::write_some_with(this->stream(), from, options);
    }
    /// try_write_some() of the stream, if it has one.
    [[nodiscard]] auto try_write_some(const_buffer from) const
        requires requires(S& whole) { whole.try_write_some(from); }
    {
        return this->stream().try_write_some(from);
    }
    /// The same for several buffers, if the stream accepts them.
    [[nodiscard]] auto try_write_some(std::span<const const_buffer> from) const
        requires requires(S& whole) { whole.try_write_some(from); }
    {
        return this->stream().try_write_some(from);
    }
    /// shutdown_write() of the stream, if it has one.
    [[nodiscard]] auto shutdown_write() const
        requires requires(S& whole) { whole.shutdown_write(); }
    {
        return this->stream().shutdown_write();
    }

private:
    friend detail::split_access;
    using stream_half<S>::stream_half;

    friend detail::stream_access;
    template <class Buffers>
    [[nodiscard]] auto write_all_operation(const Buffers& from, write_options options) const
        requires requires(S& whole) {
            detail::stream_access::write_all_operation(whole, from, options);
        }
    {
        return detail::stream_access::write_all_operation(this->stream(), from, options);
    }

    [[nodiscard]] auto send_file_operation(int file, std::uint64_t offset, std::uint64_t count,
                                           const send_file_options& options) const
        requires requires(S& whole) {
            detail::stream_access::send_file_operation(whole, file, offset, count, options);
        }
    {
        return detail::stream_access::send_file_operation(this->stream(), file, offset, count,
                                                          options);
    }

    void end() noexcept {
        if constexpr (detail::shuts_down_at_once<S>) {
            if (!this->is_last()) static_cast<void>(this->stream().shutdown_write());
        }
    }
};

} // namespace runtime

namespace detail {
template <class Stream>
inline constexpr bool is_write_half = false;
template <class S>
inline constexpr bool is_write_half<write_half<S>> = true;
} // namespace detail

/// Creates the halves, and reunites them.
struct detail::split_access {
    template <class S>
    static std::pair<read_half<S>, write_half<S>> split(S&& stream) {
        auto* const shared = new shared_stream<S>{std::forward<S>(stream)};
        return {read_half<S>{*shared}, write_half<S>{*shared}};
    }
    template <class S>
    static S reunite(read_half<S>& reads, write_half<S>& writes) {
        SIMPLENET_EXPECTS(&reads.stream() == &writes.stream(), "halves of two different streams");
        S whole(std::move(reads.stream()));
        delete std::exchange(reads.shared_, nullptr);
        writes.shared_ = nullptr;
        return whole;
    }
};

inline namespace runtime {

/// Two halves that share `stream` and can have different owners, such as two tasks.
///
/// A stream may be read and written at the same time without this; use it if no single task can own
/// the whole stream. read_half and write_half say what happens when they are destroyed.
///
/// @par Cost
/// One allocation; operations cost the same as on the stream.
/// @par Example
/// @snippet streams.cpp split
template <class S>
    requires async_reader<S> && async_writer<S> && std::move_constructible<S>
[[nodiscard]] std::pair<read_half<S>, write_half<S>> split(S stream) {
    return detail::split_access::split(std::move(stream));
}

/// Restores the stream from its halves.
///
/// @pre They are halves of the same stream.
template <class S>
[[nodiscard]] S reunite(read_half<S> reads, write_half<S> writes) {
    return detail::split_access::reunite(reads, writes);
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
