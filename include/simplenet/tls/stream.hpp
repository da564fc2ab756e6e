#pragma once
// tls::stream: TLS over any stream. Layer tls.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/tls/connection_info.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/detail/connection.hpp>
#include <simplenet/tls/detail/operations.hpp>
#include <simplenet/tls/errc.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// TLS over a stream: an async_reader and async_writer that works with every algorithm.
///
/// Owns the transport. The side of the context decides which part of the handshake it plays; the
/// first read or write does it. At most one read and one write may be in flight. Movable, even with
/// operations in flight; destroying it is close(). Loop thread only.
///
/// After a stop or a deadline the stream is usable: a read has lost nothing, and a write reports
/// bytes that were sealed as written. Their rest leaves with the next write or shutdown_write().
/// The same holds after a std::bad_alloc. If OpenSSL itself lacks memory, the connection fails.
///
/// @par Cost
/// Creating one allocates. An idle one holds no buffers: they are borrowed from the loop while
/// something is in progress. An operation is a coroutine whose frame is recycled.
/// @par Example
/// @snippet tls.cpp echo
template <class S>
    requires async_reader<S> && async_writer<S> && std::move_constructible<S>
class stream {
public:
    /// Takes `transport`; throws std::bad_alloc. On a client that verifies, an empty `server_name`
    /// makes the handshake fail with `errc::bad_configuration`, unless
    /// stream_options::verify_name is false.
    stream(S transport, const context& with, const stream_options& options = {})
        : connection_{new detail::connection<S>{std::move(transport), with, options}} {}

    stream(stream&& other) noexcept
        : connection_{std::exchange(other.connection_, nullptr)} {}
    stream& operator=(stream&& other) noexcept {
        if (this != &other) {
            drop();
            connection_ = std::exchange(other.connection_, nullptr);
        }
        return *this;
    }
    ~stream() { drop(); }

    /// Completes the handshake, which the first read or write would do as well. Succeeds at once if
    /// it is complete.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// - Each `errc` but `key_mismatch`. The stream fails with the same error from then on.
    /// - `std::errc::not_enough_memory`.
    /// - Those of the transport.
    /// @par Cancellation
    /// Continues where it was.
    [[nodiscard]] task<result<>> handshake() { return detail::handshake(keep()); }

    /// Reads at least one byte, and all that has been decrypted and fits.
    ///
    /// @pre `into` is not empty, and no other read is in flight.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    ///
    /// @par Errors
    /// - `errc::end_of_stream` of the library: the peer has sent close_notify.
    /// - `errc::truncated`: the transport ended without it.
    /// - `errc::record_invalid`, `errc::peer_alert`, `errc::renegotiation_refused`: the connection
    ///   is over.
    /// - Those of handshake() and of the transport.
    /// @par Cancellation
    /// Nothing is lost.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into) {
        SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
        return detail::read_some(keep(), into);
    }
    /// Waits until read_some() would not wait, and takes nothing.
    ///
    /// @pre No read is in flight.
    /// @return An awaitable of `result<>`: success also if the read will fail.
    [[nodiscard]] task<result<>> readable() { return detail::readable(keep()); }

    /// Reads all that has been decrypted, at most about 32 KiB, into memory that is borrowed only
    /// then: an idle stream holds none.
    ///
    /// @pre No other read is in flight.
    /// @return An awaitable of `result<received>`: a lease on at least one byte.
    ///
    /// @par Errors
    /// - `std::errc::not_enough_memory`: nothing is lost.
    /// - Those of read_some().
    /// @par Cancellation
    /// Nothing is lost.
    [[nodiscard]] task<result<received>> receive() { return detail::receive(keep()); }
    /// Takes what has arrived already, without waiting.
    ///
    /// @pre The loop of the stream runs on this thread, and no read is in flight.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: no whole record is there, or the handshake is not
    ///   complete.
    /// - Otherwise as for receive().
    [[nodiscard]] result<received> try_receive()
        requires ready_reader<S>
    {
        return detail::try_receive(here());
    }

    /// Writes at least one byte of `from`, and as many as one send should carry: about 64 KiB.
    /// Writes nothing if `from` is empty.
    ///
    /// @pre No other write is in flight.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes that were sealed. The
    ///         transport has taken them, unless a stop came first.
    ///
    /// @par Errors
    /// - `std::errc::broken_pipe`: after shutdown_write().
    /// - Those of handshake() and of the transport.
    /// @par Cancellation
    /// Before anything was sealed, the stop is the error. Later it is a success, and the rest
    /// leaves first with the next write.
    [[nodiscard]] task<result<std::size_t>> write_some(const_buffer from,
                                                       write_options options = {}) {
        return detail::write_some(keep(), from, options);
    }
    /// The same for several buffers, one after the other. Small ones share a record.
    [[nodiscard]] task<result<std::size_t>> write_some(std::span<const const_buffer> from,
                                                       write_options options = {}) {
        return detail::write_some(keep(), from, options);
    }

    /// Seals as write_some() does and sends what the transport takes without waiting. The rest
    /// leaves with the next write.
    ///
    /// @pre The loop of the stream runs on this thread, and no write is in flight.
    /// @return The number of bytes that were sealed.
    ///
    /// @par Errors
    /// - `std::errc::operation_would_block`: the rest of an earlier write has not left, or the
    ///   handshake is not complete.
    /// - Otherwise as for write_some(), but for errors of the transport: the next write_some()
    ///   reports them. Throws std::bad_alloc.
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from)
        requires ready_writer<S>
    {
        return detail::try_write_some(here(), {&from, 1});
    }
    /// The same for several buffers.
    [[nodiscard]] result<std::size_t> try_write_some(std::span<const const_buffer> from)
        requires ready_writer<S>
    {
        return detail::try_write_some(here(), from);
    }

    /// Tells the peer with a close_notify that nothing more will be sent; reading continues.
    ///
    /// @pre No write is in flight.
    /// @return An awaitable of `result<>`: success once the transport has taken the close_notify.
    ///
    /// @par Errors
    /// - Those of handshake() and of the transport.
    /// @par Cancellation
    /// May be repeated: the close_notify is sent once.
    [[nodiscard]] task<result<>> shutdown_write() { return detail::shutdown_write(keep()); }

    /// Closes the transport at once. A close_notify is sent if the loop runs and the transport
    /// takes it without waiting. Operations in flight end as those of the transport.
    void close() noexcept {
        if (connection_ != nullptr) detail::close(*connection_);
    }
    /// Returns when the transport is closed, and its descriptor number is free.
    [[nodiscard]] auto closed()
        requires requires(S& over) { over.closed(); }
    {
        return here().transport.closed();
    }

    /// Sends a close_notify, drops what the peer still sends until its close_notify arrives, and
    /// closes; at the latest after `grace`.
    ///
    /// @pre No operation is in flight.
    /// @return An awaitable of `result<>`: success if the peer has answered. The transport is
    ///         closed in any case.
    ///
    /// @par Errors
    /// - `errc::deadline_exceeded` of the library: the peer has not answered within `grace`.
    /// - Those of read_some() and shutdown_write().
    /// @par Cancellation
    /// Closes at once.
    template <class Rep, class Period>
    [[nodiscard]] task<result<>> async_close(std::chrono::duration<Rep, Period> grace) {
        return detail::close_within(keep(), simplenet::detail::saturated(grace));
    }

    /// Lets a read or write fail with `errc::deadline_exceeded` when it has waited for `limit` and
    /// no application data has moved in either direction meanwhile: records without data do not
    /// count. Zero or less: no limit. A write for which nothing moves fails after twice the limit
    /// at the latest, or later if the kernel enlarges its buffer meanwhile: see
    /// async_stream::set_idle_timeout().
    ///
    /// A new limit applies to operations that begin after the call. One in flight that the old
    /// limit ends goes on if the new one allows it.
    template <class Rep, class Period>
    void set_idle_timeout(std::chrono::duration<Rep, Period> limit) noexcept {
        here().idle_limit = simplenet::detail::saturated(limit);
    }

    /// What the handshake has agreed on.
    ///
    /// @pre The handshake is complete.
    [[nodiscard]] const connection_info& info() const { return here().info(); }
    /// The reason of the failure for people: OpenSSL's, or ours. Empty if there was none.
    [[nodiscard]] std::string error_detail() const { return here().error_detail(); }

    /// The stream below. What is read from it or written to it by others breaks the connection.
    [[nodiscard]] S& transport() const noexcept { return here().transport; }
    /// Decrypted bytes that are left from the last read.
    [[nodiscard]] std::size_t pending() const noexcept { return here().pending(); }

    /// Internal: handshake() whose steps count in `limit`.
    [[nodiscard]] task<result<>> handshake(detail::handshake_limit& limit) {
        here().limit = &limit;
        return handshake();
    }

private:
    [[nodiscard]] detail::connection<S>& here() const noexcept {
        SIMPLENET_EXPECTS(connection_ != nullptr, "a tls::stream was used after it was moved from");
        return *connection_;
    }
    [[nodiscard]] detail::connection_ref<S> keep() const noexcept {
        return detail::connection_ref<S>{here()};
    }
    void drop() noexcept {
        close();
        detail::connection_ref<S>::drop(std::exchange(connection_, nullptr));
    }

    detail::connection<S>* connection_; // counted; null only after a move
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
