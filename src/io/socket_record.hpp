#pragma once
// socket_record: the state that a loop keeps for one socket. Layer io, private.

#include "io/backend_states.hpp"
#include "io/buffer_line.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/detail/ring.hpp>
#include <simplenet/io/detail/closed_operation.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simplenet::v0::detail {

class backend_driver;
class io_queue;

struct paused_tag;  // listeners that wait for a descriptor
struct touched_tag; // sockets on which something moved in this turn

/// The part of a listener that a stream does not need.
struct accept_state final : timer_node {
    explicit accept_state(socket_record& of)
        : record{of} {}
    void expired() noexcept override; // the pause after EMFILE or a similar error has ended

    socket_record& record;
    unsigned most_ahead = 64;         // io_uring stops accepting at this many; 0: none
    ring<int> ahead{64};              // descriptors accepted before accept() was called
    bool accepts_in_a_row = false;    // a call has accepted one, and another one waited
    int highest = 0;                  // number of late; see note()
    int scarce = 0;                   // numbers from here on mean that descriptors run out
    std::chrono::nanoseconds pause{}; // the last one; grows while the shortage lasts
    /// A connection was accepted. One low number tells little, because it may just have become
    /// free: so `highest` falls by one only.
    void note(int connection) noexcept { highest = std::max(connection, highest - 1); }
    /// Nothing is accepted until the timer expires or this loop closes a descriptor.
    [[nodiscard]] bool pausing() const noexcept { return armed(); }
};

/// The clock of set_idle_timeout().
struct idle_state final : timer_node, list_hook<touched_tag> {
    explicit idle_state(socket_record& of) noexcept
        : record{of} {}
    void expired() noexcept override;

    socket_record& record;
    std::chrono::nanoseconds limit{};
    timer_wheel::time_point last{}; // when bytes last moved or an operation began to wait
    int unsent = 0; // bytes that the kernel still had to deliver then, if a write waited
    /// Whether bytes moved in this turn: on the loop's list.
    [[nodiscard]] bool touched() const noexcept {
        return static_cast<const list_hook<touched_tag>&>(*this).linked();
    }
};

/// Bytes that another loop received for a stream before it was handed over.
struct brought_bytes {
    std::vector<std::byte> bytes;
    std::size_t taken = 0;
};

/// The kind of a socket.
enum class record_kind : std::uint8_t {
    stream,
    local_bytes,  // a local_byte_stream whose peers cannot attach descriptors
    local_stream, // descriptors may be attached to its bytes
    listener,
    datagrams,
};

/// How far the close of a socket has come.
//
// open
// closing    close() was called; an operation or the kernel still holds the descriptor, or still
//            refers to a listener, whose descriptor is closed at once
// releasing  like closing, but for release(), which keeps the descriptor
// closed     nothing held the descriptor any more, and it was closed
// released   nothing holds the descriptor any more; release() takes it, which changes no state
enum class record_state : std::uint8_t { open, closing, releasing, closed, released };

/// How a socket is read.
enum class reading : std::uint8_t {
    by_driver,       // by the backend: io_uring receives ahead, epoll first tells what was brought
    large,           // as by_driver; but pieces are large, so the next read that waits changes to
    directly,        // by recv(2); the socket is open
    without_buffers, // the same, until the pool has buffers for the kernel again
};

/// `error` of an operation at the end of the stream.
inline constexpr int end_of_stream_error = -static_cast<int>(errc::end_of_stream);

/// One socket of a loop.
///
/// Owned by the loop it is bound to, and by its handle while it is bound to none: before the first
/// operation, and after the loop's end. Freed when the handle is gone, the descriptor is closed and
/// the kernel does not refer to it.
///
/// Invariant: `reader` and `writer` are set exactly while those operations wait or are queued.
struct socket_record final : list_hook<>, list_hook<paused_tag> {
    explicit socket_record(int descriptor) noexcept
        : fd{descriptor} {}

    io_queue* home = nullptr;
    io_queue* open_on = nullptr;      // home, until close(): a start needs only one comparison
    backend_driver* driver = nullptr; // of home
    int fd;                           // -1 once closed
    record_kind kind = record_kind::stream;
    record_state state = record_state::open;
    operation* reader = nullptr;
    operation* writer = nullptr;

    // The state of reads. `end` is delivered after everything that was received.
    bool readable = false;  // an attempt is worth its system call, or data was received ahead
    bool writable = true;   // the same for a write
    bool receiving = false; // the backend already watches for reads: no need to submit one
    // A short read does not mean that nothing is left: epoll reported a hang-up, after which no
    // edge follows; io_uring would not report one; or reads stop short for other reasons.
    bool reads_to_the_end = false;
    reading reads = reading::by_driver;
    bool write_told = false; // of the error that ended the connection
    bool end_told = false;   // a read has reported the end of the stream
    bool held = true;        // a handle exists
    bool aborts = false;     // close() resets: set_linger(0), or bytes were dropped
    epoll_state epoll;
    uring_state uring;

    int end = 0; // the error that follows the data received ahead; 0: none yet
    // What the next recv(2) that returns 0 is reported as: the end, or the error that a write took
    // from the kernel.
    std::int16_t zero_means = end_of_stream_error;
    std::uint16_t kernel_references = 0; // entries that refer to this record or its operations
    buffer_line ahead;                   // received before a read

    /// Delivered before everything else; not empty. `readable` is set meanwhile.
    std::unique_ptr<brought_bytes> brought;
    segment_limit segments; // of send_segmented()
    std::unique_ptr<accept_state> accepting;
    std::unique_ptr<idle_state> idle;
    intrusive_list<closed_operation> closed_waiters;

    [[nodiscard]] bool is_open() const noexcept { return state == record_state::open; }
    /// The close has finished: the kernel does not refer to the record any more.
    [[nodiscard]] bool is_over() const noexcept { return state >= record_state::closed; }
    /// Its descriptor and the bytes received ahead are for release().
    [[nodiscard]] bool is_kept() const noexcept {
        return state == record_state::releasing || state == record_state::released;
    }
    [[nodiscard]] bool is_stream() const noexcept { return kind <= record_kind::local_stream; }
    /// Never received ahead.
    [[nodiscard]] bool is_unix_stream() const noexcept {
        return kind == record_kind::local_bytes || kind == record_kind::local_stream;
    }
    /// The error that the next read has to report behind everything that was received, and that
    /// the kernel does not repeat; 0 if there is none.
    [[nodiscard]] int read_error() const noexcept {
        const int next = end != 0 ? end : zero_means;
        return next > 0 ? next : 0;
    }
    [[nodiscard]] bool reads_directly() const noexcept { return reads >= reading::directly; }

    /// Removes it from every list of its loop.
    void unlink_all() noexcept {
        static_cast<list_hook<>&>(*this).unlink();
        static_cast<list_hook<paused_tag>&>(*this).unlink();
    }

    /// An operation waits, or is queued.
    [[nodiscard]] bool waits() const noexcept { return reader != nullptr || writer != nullptr; }
    [[nodiscard]] operation*& slot_of(const operation& op) noexcept {
        return is_read(op.kind) ? reader : writer;
    }
};

/// `error` of an operation that was stopped.
[[nodiscard]] inline int error_number(stop_reason reason) noexcept {
    return reason == stop_reason::deadline ? -static_cast<int>(errc::deadline_exceeded) : ECANCELED;
}

} // namespace simplenet::v0::detail
