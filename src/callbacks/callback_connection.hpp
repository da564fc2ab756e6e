#pragma once
// callback_connection: the life of a callbacks::connection, inside the coroutine that serves it.
// Layer callbacks, private. Loop thread only.

#include <simplenet/callbacks/connection.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/stream/detail/write_queue.hpp>
#include <simplenet/sync/async_event.hpp>

#include <exception>
#include <string>
#include <system_error>

namespace simplenet::v0::detail {

/// Owned by a coroutine of the connection's loop, with the stream; the connection refers to it
/// until its end.
///
/// Invariant: bytes are queued only while write_queued() runs, until close().
class callback_connection {
public:
    /// @param of  Borrowed, like `stream`.
    callback_connection(callbacks::handlers& of, tcp_stream& stream, const endpoint& peer,
                        const endpoint& local);
    callback_connection(const callback_connection&) = delete;
    callback_connection& operator=(const callback_connection&) = delete;
    ~callback_connection() { forget(); }

    /// From on_connection() to on_connection(). Rethrows the exception of a handler.
    [[nodiscard]] task<> run();

    /// Closes and calls on_connection() now; no handler is called afterwards.
    void end_here() noexcept;

    [[nodiscard]] const callbacks::connection_ptr& self() const noexcept { return self_; }

    // What the connection does.
    void send(const_buffer bytes);
    void send(std::string& bytes);
    void shutdown() noexcept;
    void close() noexcept;
    void set_reading(bool on) noexcept;
    void set_no_delay(bool on) noexcept { static_cast<void>(stream_.set_no_delay(on)); }

private:
    [[nodiscard]] task<> read();
    [[nodiscard]] task<> write_queued();

    /// Sends what the kernel takes now; returns the number of bytes that need nothing more.
    [[nodiscard]] std::size_t try_send(const_buffer bytes);
    template <class Append>
    void enqueue(std::size_t size, Append append);
    void drained();
    void write_failed(std::error_code error) noexcept;
    void fail_with(std::error_code error) noexcept;
    void note_error(std::error_code error) noexcept;
    void went_down() noexcept;
    void forget() noexcept;
    template <class Function, class... Args>
    void call(Function callbacks::handlers::* which, Args&&... arguments) noexcept;
    /// Does it in a later turn, outside of every call of the program.
    template <class Function>
    void later(Function function);

    callbacks::handlers* handlers_; // null: call none any more
    tcp_stream& stream_;
    task_group writing_; // write_queued(), at most one at a time but for one that has finished
    callbacks::connection_ptr self_;
    callbacks::buffer input_;
    write_queue output_;
    async_event may_read_{true};
    std::exception_ptr thrown_; // by a handler, the first

    bool reading_ = true;    // the program wants messages
    bool receiving_ = false; // read() waits for bytes, and notices when the connection idles
    bool is_writing_ = false;
    bool ending_ = false; // shutdown() was called: nothing more is sent
    bool broken_ = false; // a write failed: nothing more is sent
    bool closed_ = false;
    bool tells_drained_ = false; // on_write_complete() will be called
};

/// Serves a connection with callbacks, to its end.
[[nodiscard]] task<> serve_callbacks(callbacks::handlers& handlers, tcp_stream stream,
                                     endpoint peer, endpoint local);

} // namespace simplenet::v0::detail
