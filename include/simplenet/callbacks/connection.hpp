#pragma once
// callbacks::connection: a TCP connection that calls functions when something happens. Layer
// callbacks.

#include <simplenet/callbacks/handlers.hpp>
#include <simplenet/core/buffer.hpp>
#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <any>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

namespace simplenet::v0::detail {
// Internal: not exported, because it is first declared here.
class callback_connection;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {
class event_loop;
} // namespace runtime

namespace callbacks {

/// A TCP connection of a callbacks::server or callbacks::client.
///
/// The loop owns the socket; this is a name for it that may be kept. After the connection has ended
/// its functions do nothing; after its loop has been destroyed too, and the last reference may go
/// on any thread.
///
/// @par Thread safety
/// Any thread, except for context(). A call on another thread than the loop's takes effect there;
/// calls of one thread take effect in their order.
///
/// @par Example
/// @snippet muduo_style_echo.cpp echo
class connection : public std::enable_shared_from_this<connection> {
public:
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() = default;

    /// Sends `bytes`. What the kernel does not take at once is copied, and sent as the peer reads.
    /// Does nothing if the connection has ended, or after shutdown() or close().
    ///
    /// @par Cost
    /// On the loop's thread one send(2); a copy of what the kernel does not take, and of everything
    /// while earlier bytes wait. On another thread a copy, and event_loop::post().
    void send(const_buffer bytes);
    /// The same for a std::string that is moved to the loop instead of copied.
    // A template for exactly an rvalue: a literal would otherwise convert to either type.
    template <std::same_as<std::string> String>
    void send(String&& bytes) {
        send_string(bytes);
    }

    /// Ends the sending direction when all that was sent before has left. Receiving continues until
    /// the peer ends its direction, too. From the call on, on whatever thread, send() sends
    /// nothing: neither the rest of an answer that a handler is sending, nor in a function posted
    /// before.
    void shutdown();
    /// Ends the connection at once. Bytes that the kernel has not taken are dropped. On the loop's
    /// thread on_message() is not called any more when this returns; on_connection() is called
    /// later.
    void close();

    /// Continues after stop_reading(). Connections begin that way.
    void start_reading();
    /// Calls on_message() no more until start_reading(), so that the peer has to wait. The end of
    /// the connection is not noticed meanwhile, unless something is sent. If sending has failed
    /// already, ends the connection: what the peer sent before is dropped, and error() stays that
    /// of the sending.
    void stop_reading();

    /// Whether send() sends: true from the beginning until shutdown(), close() or the end of the
    /// connection. The peer may still be sending when it is false.
    [[nodiscard]] bool is_connected() const noexcept {
        return connected_.load(std::memory_order_acquire);
    }
    /// Why the connection ended. None: it is still there, the peer ended it in order, or close()
    /// did.
    ///
    /// - `std::errc::connection_reset`, `std::errc::broken_pipe` and others of recv(2), send(2).
    /// - `errc::deadline_exceeded`: server_options::idle_timeout.
    /// - `errc::queue_full`: set_limit().
    /// - `std::errc::operation_canceled`: the server or client was stopped, or the loop ended.
    [[nodiscard]] std::error_code error() const noexcept;

    /// The loop of the connection. @pre It exists.
    [[nodiscard]] event_loop& loop() const noexcept { return *loop_; }
    [[nodiscard]] const endpoint& peer() const noexcept { return peer_; }
    [[nodiscard]] const endpoint& local() const noexcept { return local_; }

    /// TCP_NODELAY. server_options::no_delay and connect_options::no_delay set it at the beginning.
    void set_no_delay(bool on);
    /// When on_high_water_mark() is called: at so many queued bytes, at least 1. 64 MiB until this
    /// is called.
    void set_high_water_mark(std::size_t bytes) noexcept {
        high_water_mark_.store(bytes, std::memory_order_relaxed);
    }
    /// Closes the connection as soon as more bytes than this would be queued, which the kernel has
    /// not taken. There is no limit until this is called. Bytes on their way from another thread
    /// count when they have arrived.
    void set_limit(std::size_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }

    /// Anything that the program wants to keep with the connection. Destroyed with the last
    /// reference: a connection_ptr to this connection in here would keep both for ever.
    ///
    /// @par Thread safety
    /// Not synchronised: use it on the loop's thread.
    [[nodiscard]] std::any& context() noexcept { return context_; }
    [[nodiscard]] const std::any& context() const noexcept { return context_; }

private:
    friend detail::callback_connection;
    connection(detail::callback_connection& living, event_loop& loop, const endpoint& peer,
               const endpoint& local);

    void send_string(std::string& bytes);
    [[nodiscard]] bool is_here() const noexcept { return detail::run_queue::current() == queue_; }
    template <class Function>
    void post(Function function);

    // Its thread may read it at any time, others never; null after the end.
    detail::callback_connection* living_;
    detail::run_queue* const queue_; // others may use it while exists_, under the mutex
    event_loop* const loop_;
    const endpoint peer_;
    const endpoint local_;
    std::atomic<bool> connected_ = true;
    std::atomic<std::size_t> high_water_mark_ = std::size_t{64} << 20U;
    std::atomic<std::size_t> limit_ = SIZE_MAX;

    mutable std::mutex mutex_;
    bool exists_ = true;    // under the mutex: the loop has not forgotten the connection
    std::error_code error_; // under the mutex

    std::any context_;
};

} // namespace callbacks
} // namespace simplenet::v0

#pragma GCC visibility pop
