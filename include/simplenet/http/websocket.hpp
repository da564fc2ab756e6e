#pragma once
// websocket: messages in both directions over one connection (RFC 6455). Layer http. Servers get
// one from router::websocket(), clients from client::websocket().

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class websocket_access;
struct websocket_connection;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Limits of a WebSocket, and what its handshake allows.
struct websocket_options {
    /// Of a server: origins other than its own whose pages may connect, as browsers write them:
    /// `https://example.org`. A request without Origin is not from a page, and is allowed.
    std::span<const std::string_view> origins;
    /// Subprotocols. A client offers them in this order. A server takes the first one of the
    /// client's list that is here, or none.
    std::span<const std::string_view> protocols;
    /// Bytes of a message, for read_message() without a limit of its own.
    std::size_t message_limit = std::size_t{1024} * 1024;
    /// A read that has waited this long for bytes sends a ping. 0: never.
    std::chrono::nanoseconds ping_interval = std::chrono::seconds{30};
    /// If no byte has arrived this long after such a ping, the connection has failed.
    std::chrono::nanoseconds pong_within = std::chrono::seconds{20};
    /// How long the closing handshake may take; also how long the end of a failed connection may.
    std::chrono::nanoseconds close_within = std::chrono::seconds{5};
    /// If the peer takes no byte of a write for this long, the connection has failed. 0: no limit.
    std::chrono::nanoseconds write_idle = std::chrono::seconds{60};
    /// Of a server: when it shuts down, read_message() closes the connection with code 1001, see
    /// there. False: the handler does it by itself, see server_stop().
    bool close_at_shutdown = true;
};

/// A WebSocket: sends and receives whole messages.
///
/// Owns the connection. One coroutine may read while others write; messages, pings and answers to
/// pings leave one after the other, each in one piece. Movable, even with operations in flight;
/// destroying it closes the connection at once, without a close frame: use close() to end it well.
/// Loop thread only.
///
/// The connection works for the program only while a read_message() is in flight: that is what
/// answers pings, and what notices that the peer has closed, is gone, or has broken the protocol.
/// No extension is negotiated.
///
/// @par Cost
/// One allocation, beside that of the stream. An idle one holds no buffers, not even while a read
/// waits, unless its stream cannot wait without one (ready_reader). Writing a message allocates
/// nothing, and reading one allocates only its string.
/// @par Example
/// @code
/// while (auto message = co_await peer.read_message()) {
///     if (!co_await peer.write_message(message->kind, message->data)) break;
/// }
/// co_await peer.close();
/// @endcode
class websocket {
public:
    /// A whole message; text is valid UTF-8.
    struct message {
        enum class kind : std::uint8_t { text, binary } kind;
        std::string data;
    };

    websocket(websocket&& other) noexcept
        : connection_{std::exchange(other.connection_, nullptr)} {}
    websocket& operator=(websocket&& other) noexcept {
        if (this != &other) {
            drop();
            connection_ = std::exchange(other.connection_, nullptr);
        }
        return *this;
    }
    ~websocket() { drop(); }

    /// Reads the next message, however many frames it arrives in.
    ///
    /// While it waits, pings are answered, pongs are consumed, and a close frame is answered.
    ///
    /// When the server around it shuts down, a read that waits, else the next one, sends a close
    /// frame with code 1001, unless websocket_options::close_at_shutdown is false. From then on
    /// nothing can be written. Messages that the peer sends before its own close frame are still
    /// delivered; the peer has websocket_options::close_within for all of it.
    ///
    /// @pre No other read_message() is in flight.
    /// @param limit  Bytes of the message. Memory grows with the bytes that arrive, not with the
    ///               size that a frame announces.
    ///
    /// @par Errors
    /// Except for a stop, each is final: the connection is over, and further reads report it again.
    /// - `errc::end_of_stream`: the peer has closed, see close_code(); or close() was called here.
    /// - `errc::limit_exceeded`: the message is longer. The peer was told: 1009.
    /// - `http::errc::websocket_protocol`: the peer broke the protocol, or sent text that is not
    ///   UTF-8. The peer was told: 1002 or 1007.
    /// - `http::errc::incomplete_message`: the connection ended without a close frame.
    /// - `std::errc::timed_out`: the peer did not answer a ping (websocket_options::pong_within) or
    ///   the close of a shutdown (websocket_options::close_within), or takes no bytes
    ///   (websocket_options::write_idle).
    /// - Any other error of the stream.
    /// @par Cancellation
    /// Nothing is lost: the next call continues, also in the middle of a message.
    [[nodiscard]] task<result<message>> read_message(std::size_t limit);
    /// The same with websocket_options::message_limit.
    [[nodiscard]] task<result<message>> read_message();

    /// Sends a text message, in one frame.
    ///
    /// Succeeds when the stream has taken the message, which does not mean that the peer has read
    /// it. A message of a server is not copied.
    ///
    /// @param text  UTF-8.
    ///
    /// @par Errors
    /// Except for the first one and for a stop, the connection is over.
    /// - `std::errc::illegal_byte_sequence`: `text` is not UTF-8. Nothing was sent.
    /// - `std::errc::broken_pipe`: a close frame was sent or received before, or is about to be
    ///   sent, since the server shuts down.
    /// - `std::errc::timed_out`: the peer took no byte for websocket_options::write_idle.
    /// - What ended the connection before.
    /// - Any other error of the stream.
    /// @par Cancellation
    /// A stop before the first byte has left is the error, and nothing was sent. Later it is a
    /// success: half a frame cannot be taken back, so its rest is copied. The rest leaves before
    /// anything else, with the next write or while a read waits.
    [[nodiscard]] task<result<>> write_message(std::string_view text);
    /// The same for a binary message, of any bytes.
    [[nodiscard]] task<result<>> write_message(std::span<const std::byte> binary);
    /// The same for either kind, as in a received message.
    [[nodiscard]] task<result<>> write_message(enum message::kind kind, const_buffer data);

    /// Sends a ping. read_message() consumes its pong.
    ///
    /// @param payload  At most 125 bytes.
    ///
    /// @par Errors
    /// - `std::errc::message_size`: `payload` is larger. Nothing was sent.
    /// - Otherwise as for write_message().
    /// @par Cancellation
    /// As for write_message().
    [[nodiscard]] task<result<>> ping(const_buffer payload = {});

    /// Closes the connection with the closing handshake: sends a close frame, unless one was sent
    /// as an answer, waits for the peer's, and then closes the stream. If the peer's has come
    /// already, ours repeats its code.
    ///
    /// Messages that arrive meanwhile are dropped, except by a read_message() that is in flight,
    /// which may deliver one more. After a failure, or an `end_of_stream` of read_message(), it
    /// lets the peer read the close frame that it was sent before the stream is closed.
    ///
    /// @param code    One that a program may send (RFC 6455, 7.4): 1000 to 1003, 1007 to 1014, or
    ///                3000 to 4999.
    /// @param reason  UTF-8, at most 123 bytes.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: `code` or `reason` is none of these. Nothing has happened.
    /// - `errc::deadline_exceeded`: the handshake took longer than websocket_options::close_within.
    /// - `std::errc::timed_out`: the peer took no byte for websocket_options::write_idle, or has
    ///   not answered a ping.
    /// - `http::errc::incomplete_message`: the connection ended without the peer's close frame.
    /// - Otherwise as for read_message(), and what ended the connection before.
    ///
    /// But for the first one, the stream is closed in every case. A second call succeeds, or
    /// reports what ended the connection.
    /// @par Cancellation
    /// Closes the stream at once.
    [[nodiscard]] task<result<>> close(std::uint16_t code = 1000, std::string_view reason = {});

    /// The code of the peer's close frame; 1005 if it has none; 1006 if the connection has ended
    /// without one; 0 as long as it is open.
    [[nodiscard]] std::uint16_t close_code() const noexcept;
    /// The reason in the peer's close frame, valid UTF-8; a view that lives as long as this does.
    [[nodiscard]] std::string_view close_reason() const noexcept;
    /// The subprotocol of the handshake; empty if there is none.
    [[nodiscard]] std::string_view protocol() const noexcept;

private:
    friend detail::websocket_access;

    explicit websocket(detail::websocket_connection* connection) noexcept
        : connection_{connection} {}
    void drop() noexcept;

    detail::websocket_connection* connection_; // shared with its operations; null after a move
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
