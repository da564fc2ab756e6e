#pragma once
// callbacks::client: a connection with callbacks that is made again whenever it is lost. Layer
// callbacks.

#include <simplenet/callbacks/connection.hpp>
#include <simplenet/callbacks/handlers.hpp>
#include <simplenet/stream/tcp_client.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace simplenet::v0::detail {
// Internal: not exported, because it is first declared here.
class client_core;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {
class event_loop;
} // namespace runtime

namespace callbacks {

/// A tcp_client whose connection calls functions.
///
/// From connect() on it connects, and connects again whenever an attempt fails or the connection
/// ends, whichever side ended it, with the pauses of client_options::backoff. Each connection is a
/// new object. connect() keeps the loop's run() going until disconnect() or stop() has taken
/// effect. Neither an exception of a handler nor a lack of memory on the loop ends the client: it
/// connects again.
///
/// Destroying it ends the connection at once, as by stop(), and returns when `on_connection` was
/// called for that: no function is called afterwards. It may outlive the loop.
///
/// @par Thread safety
/// Any thread, but moving and destroying it: one thread at a time.
///
/// @par Example
/// @snippet callbacks.cpp client
class client {
public:
    /// @param host  A name or an address, looked up for each attempt.
    /// @pre As for tcp_client.
    client(event_loop& loop, std::string host, std::uint16_t port, handlers handlers,
           const client_options& options = {});
    client(client&&) noexcept = default;
    /// Ends the client that it replaces, like the destructor.
    client& operator=(client&& other) noexcept {
        client replaced{std::move(*this)};
        core_ = std::move(other.core_);
        return *this;
    }
    /// @pre On another thread than the loop's, while the client is connecting or connected: the
    /// loop runs or will run, or is destroyed; the destructor waits for its thread.
    ~client();

    /// Begins to connect. Does nothing if it has begun; after disconnect() or stop() it begins
    /// anew.
    ///
    /// Throws std::bad_alloc; then it has not begun.
    ///
    /// @pre The loop lives until the call returns.
    void connect();
    /// Ends the connection in order, as by connection::shutdown(), and makes no other one. If there
    /// is none, as stop(). Needs no memory, like stop() and the destructor.
    void disconnect();
    /// Ends the connection or the attempts at once, and makes no other connection.
    void stop();

    /// The connection that is there now, or null.
    [[nodiscard]] connection_ptr connection() const;

private:
    std::shared_ptr<detail::client_core> core_; // null only after a move
};

} // namespace callbacks
} // namespace simplenet::v0

#pragma GCC visibility pop
