#pragma once
// socket_record: what a loop knows about one socket. Layer io, private.

#include "io/backend_states.hpp"
#include "io/buffer_line.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/detail/ring.hpp>
#include <simplenet/io/detail/closed_operation.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/socket/detail/datagram_calls.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>

namespace simplenet::v0::detail {

class backend_driver;
class io_queue;

struct paused_tag;  // listeners that wait for a descriptor
struct touched_tag; // sockets on which something moved in this turn

/// Accepting: what a listener needs and a stream does not.
struct accept_state final : timer_node {
    /// io_uring stops accepting when there are so many that nobody asked for.
    static constexpr int most_ahead = 64;

    explicit accept_state(socket_record& of)
        : record{of} {}
    void expired() noexcept override; // the pause after EMFILE and its like is over

    socket_record& record;
    ring<int> ahead{most_ahead};      // descriptors accepted before anybody asked
    int newest = 0;                   // the last one accepted
    int scarce = 0;                   // numbers from here on say that descriptors are running out
    std::chrono::nanoseconds pause{}; // the last one; grows while the condition lasts
    bool pausing = false;
};

/// The clock of set_idle_timeout().
struct idle_state final : timer_node, list_hook<touched_tag> {
    explicit idle_state(socket_record& of) noexcept
        : record{of} {}
    void expired() noexcept override;

    socket_record& record;
    std::chrono::nanoseconds limit{};
    timer_wheel::time_point last{}; // something moved, or an operation began to wait
    int unsent = 0; // bytes that the kernel still had to deliver then, if a write waited
    /// Something moved in this turn: on the loop's list.
    [[nodiscard]] bool touched() const noexcept {
        return static_cast<const list_hook<touched_tag>&>(*this).linked();
    }
};

/// What a socket is.
enum class record_kind : std::uint8_t {
    stream,
    local_stream, // what nobody asked for stays in the kernel: descriptors may be attached
    listener,
    datagrams,
};

/// How far the close of a socket has come.
//
// open
// closing    close() was called; an operation or the kernel still holds the descriptor
// releasing  the same after release(), which keeps the descriptor
// closed     nothing holds the descriptor any more, and it is closed
// released   nothing holds it any more, and it waits for release() to take it
enum class record_state : std::uint8_t { open, closing, releasing, closed, released };

/// How a socket is read.
enum class reading : std::uint8_t {
    by_driver, // as the backend does it: io_uring receives ahead, epoll has an error to tell first
    large,     // as by_driver; but pieces are large, so the next read that waits changes it to
    directly,  // what is readable is read by recv(2); it is open
    without_buffers, // the same, until the pool has buffers for the kernel again
};

/// One socket of a loop.
///
/// Owned by the loop it is bound to, and by its handle while it is bound to none: before the first
/// operation, and after the loop's end. Freed when the handle is gone, the descriptor closed and
/// the kernel has forgotten it.
///
/// Invariant: `reader` and `writer` are set exactly while those operations wait or are queued.
struct socket_record final : list_hook<>, list_hook<paused_tag> {
    explicit socket_record(int descriptor) noexcept
        : fd{descriptor} {}

    io_queue* home = nullptr;
    io_queue* open_on = nullptr;      // home, until close(): one comparison says that all is well
    backend_driver* driver = nullptr; // of home
    int fd;                           // -1 once closed
    record_kind kind = record_kind::stream;
    record_state state = record_state::open;
    operation* reader = nullptr;
    operation* writer = nullptr;

    // What a read would find. `end` is delivered after everything that was received.
    bool readable = false;  // an attempt is worth its system call, or the queue is not empty
    bool writable = true;   // the same for a write
    bool receiving = false; // the backend watches for reads already: no need to submit one
    // A short read does not mean that nothing is left: epoll spoke of a hang-up, after which there
    // is no next edge, or io_uring would not; or reads stop short for other reasons.
    bool reads_to_the_end = false;
    reading reads = reading::by_driver;
    bool held = true;    // a handle exists
    bool aborts = false; // close() resets: set_linger(0), or bytes were dropped
    epoll_state epoll;
    uring_state uring;

    int end = 0; // what comes after the received-ahead data: 0 nothing yet, or an error
    std::uint16_t kernel_references = 0; // entries that name this record or its operations
    buffer_line ahead;                   // received before anybody asked

    segment_limit segments; // of send_segmented()
    std::unique_ptr<accept_state> accepting;
    std::unique_ptr<idle_state> idle;
    intrusive_list<closed_operation> closed_waiters;

    [[nodiscard]] bool is_open() const noexcept { return state == record_state::open; }
    /// The close is over: the kernel knows nothing of it any more.
    [[nodiscard]] bool is_over() const noexcept { return state >= record_state::closed; }
    /// Its descriptor, and what was received ahead, are for release().
    [[nodiscard]] bool is_kept() const noexcept {
        return state == record_state::releasing || state == record_state::released;
    }
    [[nodiscard]] bool is_stream() const noexcept { return kind <= record_kind::local_stream; }
    [[nodiscard]] bool reads_directly() const noexcept { return reads >= reading::directly; }

    /// Out of every list of its loop.
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

/// `error` of an operation at the end of the stream.
inline constexpr int end_of_stream_error = -static_cast<int>(errc::end_of_stream);

} // namespace simplenet::v0::detail
