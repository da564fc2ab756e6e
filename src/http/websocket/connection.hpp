#pragma once
// websocket_connection: the state behind a websocket, without its coroutines. Layer http, private.

#include "http/codec/utf8.hpp"
#include "http/codec/websocket_frame.hpp"
#include "http/websocket/websocket_access.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/http/websocket.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/sync/async_mutex.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace simplenet::v0::http::detail {

class watch_base;

/// A time that does not come.
inline constexpr auto never = std::chrono::steady_clock::time_point::max();

/// Frames that arrive, up to whole messages. Does no I/O: it is given bytes.
class message_assembler {
public:
    explicit message_assembler(websocket_role role) noexcept
        : parser_{role == websocket_role::server} {}

    enum class event : std::uint8_t {
        needs_bytes,
        message, // take_message()
        ping,    // control()
        pong,
        close,
        wrong, // the peer is to be told close_code()
    };

    /// Continues with `bytes`, up to the next event, and removes what it has used. Throws
    /// std::bad_alloc, and has then used nothing of the payload.
    [[nodiscard]] event advance(const_buffer& bytes, std::size_t limit);

    /// Where the next bytes of a long payload may be read to, without a copy; empty if the next
    /// bytes may be others. Throws std::bad_alloc.
    [[nodiscard]] mutable_buffer direct_room();
    /// `count` bytes, or none, were read into direct_room(). False: as for `wrong`.
    [[nodiscard]] bool filled(std::size_t count) noexcept;

    [[nodiscard]] websocket::message take_message() noexcept {
        return {.kind = kind_, .data = std::exchange(text_, {})};
    }
    /// The payload of a control frame.
    [[nodiscard]] std::string_view control() const noexcept {
        return {reinterpret_cast<const char*>(control_.data()), control_size_};
    }
    [[nodiscard]] std::uint16_t close_code() const noexcept { return close_code_; }

    /// Skips messages from here on, of any size.
    void discard() noexcept {
        discards_ = true;
        text_ = {};
    }

private:
    [[nodiscard]] event wrong(std::uint16_t code) noexcept {
        close_code_ = code;
        return event::wrong;
    }
    void begin_payload() noexcept;
    [[nodiscard]] bool is_too_large(std::size_t limit) const noexcept {
        return text_.size() > limit || left_ > limit - text_.size();
    }
    [[nodiscard]] event end_payload() noexcept;
    void take_control(const_buffer bytes) noexcept;
    [[nodiscard]] bool take_data(const_buffer bytes);
    [[nodiscard]] bool accept_data(std::size_t from) noexcept;

    frame_parser parser_;
    utf8_validator utf8_;
    bool in_payload_ = false;
    bool discards_ = false;
    enum websocket::message::kind kind_ = websocket::message::kind::text;
    std::uint8_t control_size_ = 0;
    std::uint16_t close_code_ = 0;
    std::uint64_t at_ = 0;      // bytes of the payload that have come
    std::uint64_t left_ = 0;    // bytes of it that have not
    std::size_t direct_at_ = 0; // where direct_room() begins
    std::string text_;          // of the message, unmasked
    std::array<std::byte, control_limit> control_;
};

/// What is to be sent beside messages: control frames, and the rest of a message whose write was
/// stopped.
///
/// Holds at most one control frame that is being sent, one owed pong, ping and close: a peer that
/// sends pings and does not read cannot make it grow (RFC 6455, 5.5.3: only the last ping needs its
/// pong).
class output_queue {
public:
    explicit output_queue(websocket_role role) noexcept
        : masks_{role == websocket_role::client} {}

    /// What leaves next, in this order: the rest of a message, the control frame that was begun, an
    /// owed pong, an owed ping, an owed close. Empty if there is nothing.
    [[nodiscard]] const_buffer next() noexcept;
    [[nodiscard]] bool empty() const noexcept {
        return rest_.empty() && begin_ == end_ && !owes_pong_ && !owes_ping_ && owed_close_ == 0;
    }
    /// `count` bytes of next() have left.
    void sent(std::size_t count) noexcept;

    /// Answers a ping, in place of an earlier one whose pong has not begun to leave.
    void owe_pong(std::string_view payload) noexcept;
    void owe_ping() noexcept { owes_ping_ = true; }
    /// Closes with `code` when what has begun has left.
    void owe_close(std::uint16_t code) noexcept {
        forget_owed();
        owed_close_ = code;
    }
    /// Appends the rest of a message that was begun. Throws std::bad_alloc.
    [[nodiscard]] std::string& rest() noexcept { return rest_; }

    /// Adds a control frame. @pre empty()
    void add(websocket_opcode code, const_buffer payload) noexcept;
    /// Takes the frame of add() back; false if a part of it has left.
    [[nodiscard]] bool take_back() noexcept;
    /// Nothing may follow a close frame, and no peer needs an answer behind its own.
    void forget_owed() noexcept { owes_pong_ = owes_ping_ = false; }

private:
    bool masks_;
    bool owes_pong_ = false;
    bool owes_ping_ = false;
    std::uint8_t begin_ = 0; // of the bytes of frame_ that have not left
    std::uint8_t end_ = 0;
    std::uint8_t pong_size_ = 0;
    std::uint16_t owed_close_ = 0; // its code; 0: none
    std::size_t rest_begin_ = 0;
    std::string rest_;
    std::array<std::byte, control_limit> pong_;
    std::array<std::byte, frame_head_limit + control_limit> frame_;
};

/// The frame of a message on its way. Borrows the payload. A server's is sent from where it is; a
/// client's is masked into memory of its own, piece by piece.
class outgoing_message {
public:
    /// Throws std::bad_alloc.
    outgoing_message(websocket_role role, enum websocket::message::kind kind, const_buffer payload);
    outgoing_message(const outgoing_message&) = delete; // `parts_` are views of the rest
    outgoing_message& operator=(const outgoing_message&) = delete;
    ~outgoing_message() = default;

    /// What is to be sent next; empty at the end. Valid until sent().
    [[nodiscard]] std::span<const const_buffer> next() noexcept;
    void sent(std::size_t count) noexcept;
    [[nodiscard]] bool begun() const noexcept { return begun_; }
    /// Appends everything that has not left. Throws std::bad_alloc.
    void copy_rest(std::string& to);

private:
    void fill_piece(std::size_t used) noexcept;

    frame_head head_;
    bool begun_ = false;
    std::array<std::byte, frame_head_limit> head_bytes_; // of a server
    std::uint64_t masked_ = 0;                           // bytes of the payload in pieces so far
    const_buffer payload_;                               // what is in no piece yet
    scratch piece_;                                      // of a client
    std::array<const_buffer, 2> parts_; // what has not left, of a head and a payload or of a piece
};

/// A websocket and its stream. Owned by the handle and by each operation.
struct websocket_connection final : simplenet::detail::stop_waiter {
    websocket_connection(any_stream&& over, websocket_role side, const websocket_options& options,
                         received&& from_handshake, std::string&& chosen) noexcept;

    /// Ends the connection. Further operations report `why`, unless the peer has closed properly.
    void end(std::error_code why) noexcept;
    void close_stream() noexcept;
    /// Why nothing may be written; success if it may.
    [[nodiscard]] std::error_code write_refusal() const noexcept;
    /// Whether the reader is to send output, because no writer will.
    [[nodiscard]] bool has_idle_output() const noexcept {
        return !output.empty() && !write_failure && !writing.locked();
    }
    /// Sends what the stream takes at once, unless a writer will.
    void offer() noexcept;
    /// A reader that waits looks again at what there is to do.
    void wake_reader() noexcept;
    /// Bytes have arrived.
    void take_input(received&& bytes) noexcept {
        input = std::move(bytes);
        unread = input;
        heard();
    }
    void heard() noexcept {
        pinged = false;
        is_quiet = false;
    }
    /// The server around it shuts down.
    void server_stops() noexcept override;
    /// Begins the closing handshake of a server that shuts down, if that is due.
    void leave_with_server() noexcept;
    /// Whether the peer has not answered that in time.
    [[nodiscard]] bool is_overdue() const noexcept;
    /// The peer has taken bytes, or nothing is left for it to take.
    void moved() noexcept { is_stuck = false; }
    /// When a peer that takes nothing has failed, if a write waits from now on.
    [[nodiscard]] std::chrono::steady_clock::time_point stuck_ends() noexcept;
    /// When a wait that begins now has been silent for too long.
    [[nodiscard]] std::chrono::steady_clock::time_point silence_ends() noexcept;

    any_stream stream;
    websocket_role role;
    bool reads = false;          // a read_message(), or a close() that reads
    bool closing = false;        // close() was called
    bool server_ends = false;    // and reads are to close with it
    bool close_sent = false;     // or has begun to be, or is owed
    bool close_received = false; // a valid one
    bool has_answered = false;   // the peer's close or violation, as far as the peer let us
    bool write_ended = false;    // the stream's side was shut down
    bool closed = false;         // the stream
    bool pinged = false;         // by silence_ends(), and heard nothing since
    bool is_quiet = false;       // since quiet_since
    bool is_stuck = false;       // since stuck_since
    bool lends = true;           // the stream is a ready_reader, as far as is known
    std::uint16_t close_code = 0;
    std::uint16_t refusal_code = 0; // what the peer is told about its violation
    unsigned owners = 1;
    std::size_t message_limit;
    std::chrono::nanoseconds ping_interval;
    std::chrono::nanoseconds pong_within;
    std::chrono::nanoseconds close_within;
    std::chrono::nanoseconds write_idle;
    std::chrono::steady_clock::time_point quiet_since{};
    std::chrono::steady_clock::time_point stuck_since{};
    // After leave_with_server(): until then the peer has to close.
    std::chrono::steady_clock::time_point close_until = never;
    std::error_code failure;       // final, of everything
    std::error_code write_failure; // final, of writes: the peer may have sent more, and a close
    received input;
    const_buffer unread; // of the input; if it is empty, the input holds nothing
    message_assembler messages;
    output_queue output;
    async_mutex writing;        // its holder sends whole frames, and then the output
    async_event reader_left;    // for close(), while a read is in flight
    watch_base* wait = nullptr; // of the reader, while it waits
    std::string close_reason;
    std::string protocol;
};

/// One of the owners of a connection.
class websocket_ref {
public:
    explicit websocket_ref(websocket_connection& of) noexcept
        : of_{&of} {
        ++of_->owners;
    }
    websocket_ref(websocket_ref&& other) noexcept
        : of_{std::exchange(other.of_, nullptr)} {}
    websocket_ref& operator=(websocket_ref&&) = delete;
    ~websocket_ref() { drop(of_); }

    websocket_connection& operator*() const noexcept { return *of_; }

    static void drop(websocket_connection* of) noexcept {
        if (of != nullptr && --of->owners == 0) delete of;
    }

private:
    websocket_connection* of_; // null after a move
};

} // namespace simplenet::v0::http::detail
