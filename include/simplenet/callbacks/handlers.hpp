#pragma once
// callbacks::handlers: the functions that a server or a client calls about its connections. Layer
// callbacks.

#include <simplenet/callbacks/buffer.hpp>

#include <cstddef>
#include <functional>
#include <memory>

#pragma GCC visibility push(default)

namespace simplenet::v0::callbacks {

class connection;
using connection_ptr = std::shared_ptr<connection>;

/// What a server or a client calls about its connections. Each function may be empty.
///
/// They are called on the thread of the connection's loop, one at a time for each connection, and
/// never from inside a call on the connection: send() returns before on_write_complete() is called.
/// A server copies them for each of its loops.
///
/// An exception that leaves one ends the connection: on_connection() is told, then the exception
/// goes where that of a server's handler goes (server_options::on_handler_exception). The server
/// goes on. So does a client, which connects again: its exceptions go to
/// `loop_options::on_unhandled`, or if that is null to standard error as a line, at most one a
/// second.
struct handlers {
    // The initialisers let a program name only some of them without a warning of the compiler.

    /// Called twice: at the beginning, when connection::is_connected(), and at the end, when it is
    /// not. Nothing is called before the first or after the second. connection::error() then has
    /// the reason.
    std::function<void(const connection_ptr&)> on_connection = {};
    /// Called when bytes have arrived. `input` holds all that were received and not retrieved: what
    /// the function leaves there, it finds in front of the next bytes. If empty, bytes are dropped.
    std::function<void(const connection_ptr&, buffer& input)> on_message = {};
    /// Called when the kernel has taken all that was sent; once for several calls of send() that
    /// were complete before it.
    std::function<void(const connection_ptr&)> on_write_complete = {};
    /// Called when the bytes that the kernel has not taken grow to the high-water mark or beyond,
    /// with their number. The next call comes after they have been fewer. If all has been taken
    /// meanwhile, on_write_complete() follows: stop_reading() here and start_reading() there leave
    /// no connection without reading.
    std::function<void(const connection_ptr&, std::size_t queued)> on_high_water_mark = {};
    /// Called instead of closing the connection when no byte has moved in either direction during
    /// server_options::idle_timeout, and again after each further such time. Not while reading is
    /// stopped and nothing is queued. If empty, the connection is closed, and its error is
    /// `errc::deadline_exceeded`.
    std::function<void(const connection_ptr&)> on_idle = {};
};

} // namespace simplenet::v0::callbacks

#pragma GCC visibility pop
