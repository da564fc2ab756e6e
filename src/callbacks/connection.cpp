#include <simplenet/callbacks/connection.hpp>

#include "callbacks/callback_connection.hpp"
#include "sys/calls.hpp"
#include "threads/posting_queue.hpp"

#include <array>
#include <new>
#include <span>
#include <utility>

#include <sys/socket.h>

namespace simplenet::v0 {
namespace callbacks {

connection::connection(detail::callback_connection& living, event_loop& loop, const endpoint& peer,
                       const endpoint& local)
    : living_{&living}
    , queue_{&detail::run_queue::require_current()}
    , loop_{&loop}
    , peer_{peer}
    , local_{local} {}

/// Calls `function(callback_connection&)` on the loop's thread, if the connection still lives then.
template <class Function>
void connection::post(Function function) {
    auto on_loop = [self = shared_from_this(), function = std::move(function)]() mutable {
        if (self->living_ != nullptr) function(*self->living_);
    };
    // Without the lock: the memory may run out, and what is not posted may be long.
    auto* const item = new detail::posted_call<decltype(on_loop)>{std::move(on_loop)};
    const std::lock_guard locked{mutex_};
    if (exists_) {
        detail::posting_queue::of(*queue_).offer(*item);
    } else {
        item->drop(); // the caller has a reference, too
    }
}

void connection::send(const_buffer bytes) {
    if (!is_connected() || bytes.empty()) return;
    if (is_here()) {
        if (living_ != nullptr) living_->send(bytes);
        return;
    }
    std::string copy{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    send_string(copy);
}

void connection::send_string(std::string& bytes) {
    if (!is_connected() || bytes.empty()) return;
    if (is_here()) {
        if (living_ != nullptr) living_->send(bytes);
        return;
    }
    post([moved = std::move(bytes)](detail::callback_connection& to) mutable { to.send(moved); });
}

void connection::shutdown() {
    if (is_here()) {
        if (living_ != nullptr) living_->shutdown();
        return;
    }
    post([](detail::callback_connection& to) { to.shutdown(); });
    connected_.store(false, std::memory_order_release);
}

void connection::close() {
    if (is_here()) {
        if (living_ != nullptr) living_->close();
        return;
    }
    post([](detail::callback_connection& to) { to.close(); });
    connected_.store(false, std::memory_order_release);
}

void connection::start_reading() {
    if (is_here()) {
        if (living_ != nullptr) living_->set_reading(true);
        return;
    }
    post([](detail::callback_connection& to) { to.set_reading(true); });
}

void connection::stop_reading() {
    if (is_here()) {
        if (living_ != nullptr) living_->set_reading(false);
        return;
    }
    post([](detail::callback_connection& to) { to.set_reading(false); });
}

void connection::set_no_delay(bool on) {
    if (is_here()) {
        if (living_ != nullptr) living_->set_no_delay(on);
        return;
    }
    post([on](detail::callback_connection& to) { to.set_no_delay(on); });
}

std::error_code connection::error() const noexcept {
    const std::lock_guard locked{mutex_};
    return error_;
}

} // namespace callbacks

namespace detail {

callback_connection::callback_connection(callbacks::handlers& of, tcp_stream& stream,
                                         const endpoint& peer, const endpoint& local)
    : handlers_{&of}
    , stream_{stream} {
    // Not std::make_shared: the constructor is private, and a std::weak_ptr is rare.
    self_.reset(new callbacks::connection{*this, *event_loop::current(), peer, local});
}

// --- the life ------------------------------------------------------------------------------------

task<> callback_connection::run() {
    call(&callbacks::handlers::on_connection);
    try {
        co_await read();
    } catch (const std::bad_alloc&) { // no memory for the input
        note_error(std::make_error_code(std::errc::not_enough_memory));
    }
    closed_ = true; // write_queued() is told by the stream
    stream_.close();
    static_cast<void>(co_await writing_.join());
    went_down();
    if (thrown_) std::rethrow_exception(thrown_);
}

task<> callback_connection::read() {
    while (!closed_) {
        receiving_ = true;
        result<received> piece = co_await stream_.receive();
        receiving_ = false;
        while (!reading_ && !closed_) {
            may_read_.reset();
            const result<> waited = co_await may_read_.wait();
            if (!waited) co_return note_error(waited.error());
        }
        if (closed_) co_return;
        if (piece) {
            if (input_.readable() == 0) {
                input_.lend(*piece);
            } else {
                input_.append(*piece);
                piece->release();
            }
            call(&callbacks::handlers::on_message, input_);
            if (closed_ || !handlers_->on_message) input_.retrieve_all(); // nobody will see it
            input_.own();                                                 // before the lease ends
        } else if (piece.error() == errc::deadline_exceeded && handlers_ != nullptr &&
                   handlers_->on_idle) {
            call(&callbacks::handlers::on_idle);
        } else if (piece.error() == errc::end_of_stream) {
            // The peer may wait for the answer, and may get more of it from other threads.
            while (is_writing_ && !closed_) {
                const result<> joined = co_await writing_.join();
                if (!joined) co_return note_error(joined.error());
            }
            co_return;
        } else {
            co_return note_error(piece.error());
        }
    }
}

void callback_connection::end_here() noexcept {
    note_error(std::make_error_code(std::errc::operation_canceled));
    close();
    went_down();
}

/// The second on_connection(), and nothing any more.
void callback_connection::went_down() noexcept {
    self_->connected_.store(false, std::memory_order_release);
    call(&callbacks::handlers::on_connection);
    handlers_ = nullptr;
    forget();
}

void callback_connection::forget() noexcept {
    if (self_->living_ == nullptr) return;
    self_->living_ = nullptr;
    self_->connected_.store(false, std::memory_order_release);
    const std::lock_guard locked{self_->mutex_};
    self_->exists_ = false;
}

template <class Function, class... Args>
void callback_connection::call(Function callbacks::handlers::* which,
                               Args&&... arguments) noexcept {
    if (handlers_ == nullptr || !(handlers_->*which)) return;
    try {
        (handlers_->*which)(self_, std::forward<Args>(arguments)...);
    } catch (...) {
        if (!thrown_) thrown_ = std::current_exception();
        close();
    }
}

template <class Function>
void callback_connection::later(Function function) {
    self_->post(std::move(function));
}

// --- errors --------------------------------------------------------------------------------------

/// The first one stays.
void callback_connection::note_error(std::error_code error) noexcept {
    const std::lock_guard locked{self_->mutex_};
    if (!self_->error_ && !closed_) self_->error_ = error;
}

void callback_connection::fail_with(std::error_code error) noexcept {
    note_error(error);
    close();
}

void callback_connection::write_failed(std::error_code error) noexcept {
    if (closed_) return; // close() ended the write
    output_.clear();
    const bool is_gone = error == std::errc::broken_pipe || error == std::errc::connection_reset;
    if (!is_gone || !reading_) return fail_with(error);
    // What the peer sent before it went can still be received. Then read() ends, too: by itself
    // after a reset, and because of the shutdown(2) otherwise.
    note_error(error);
    broken_ = true;
    self_->connected_.store(false, std::memory_order_release);
    // Fails after a reset, when read() ends by itself.
    static_cast<void>(sys::shutdown(stream_.native_handle(), SHUT_RDWR));
}

// --- what the connection does --------------------------------------------------------------------

void callback_connection::close() noexcept {
    if (closed_) return;
    closed_ = true;
    self_->connected_.store(false, std::memory_order_release);
    // Ends read() and write_queued(), if they wait for it. The kernel may still read the queued
    // bytes.
    stream_.close();
    may_read_.set();
}

void callback_connection::shutdown() noexcept {
    if (ending_ || closed_) return;
    ending_ = true;
    self_->connected_.store(false, std::memory_order_release);
    if (!is_writing_) static_cast<void>(stream_.shutdown_write());
}

void callback_connection::set_reading(bool on) noexcept {
    if (!on && broken_) return close(); // nothing would tell of the end any more
    reading_ = on;
    if (on) may_read_.set();
}

std::size_t callback_connection::try_send(const_buffer bytes) {
    if (ending_ || broken_ || closed_) return bytes.size();
    if (is_writing_ || !output_.empty()) return 0;
    const result<std::size_t> count = stream_.try_write_some(bytes);
    if (!count) {
        if (count.error() == std::errc::operation_would_block) return 0;
        write_failed(count.error());
        return bytes.size();
    }
    if (*count == bytes.size()) drained();
    return *count;
}

void callback_connection::send(const_buffer bytes) {
    const const_buffer rest = bytes.subspan(try_send(bytes));
    if (rest.empty()) return;
    enqueue(rest.size(), [&] { output_.append(rest); });
}

void callback_connection::send(std::string& bytes) {
    const std::size_t sent = try_send(bytes);
    if (sent == bytes.size()) return;
    enqueue(bytes.size() - sent, [&] {
        if (sent == 0) {
            output_.adopt(bytes);
        } else {
            output_.append(const_buffer{bytes}.subspan(sent));
        }
    });
}

template <class Append>
void callback_connection::enqueue(std::size_t size, Append append) {
    const std::size_t before = output_.size();
    const std::size_t limit = self_->limit_.load(std::memory_order_relaxed);
    if (before > limit || size > limit - before) return fail_with(errc::queue_full);
    try {
        append();
        if (!is_writing_) {
            writing_.spawn(write_queued());
            is_writing_ = true;
        }
    } catch (const std::bad_alloc&) {
        // A part may have left already, so the caller could not try again.
        return fail_with(std::make_error_code(std::errc::not_enough_memory));
    }
    const std::size_t mark = self_->high_water_mark_.load(std::memory_order_relaxed);
    const std::size_t queued = before + size;
    if (before >= mark || queued < mark || !handlers_->on_high_water_mark) return;
    later([queued](callback_connection& it) {
        it.call(&callbacks::handlers::on_high_water_mark, queued);
    });
}

/// Calls on_write_complete(), outside of send() and after an on_high_water_mark() that was decided.
void callback_connection::drained() {
    if (tells_drained_ || !handlers_->on_write_complete) return;
    later([](callback_connection& it) {
        it.tells_drained_ = false;
        // More may have been sent meanwhile: its end is to come.
        if (it.output_.empty() && !it.closed_) it.call(&callbacks::handlers::on_write_complete);
    });
    tells_drained_ = true;
}

task<> callback_connection::write_queued() {
    std::array<const_buffer, 16> buffers;
    while (!closed_ && !output_.empty()) {
        const std::size_t many = output_.gather(buffers);
        result<std::size_t> count{0};
        // One buffer by send(2), which costs less than sendmsg(2). Not a conditional expression:
        // GCC 12 would await both of its arms.
        if (many == 1) {
            count = co_await stream_.write_some(buffers[0]);
        } else {
            count = co_await stream_.write_some(std::span<const const_buffer>{buffers}.first(many));
        }
        if (count) {
            output_.consume(*count);
            continue;
        }
        if (count.error() == errc::deadline_exceeded && !closed_ && handlers_ != nullptr &&
            handlers_->on_idle) {
            if (!receiving_) call(&callbacks::handlers::on_idle); // else read() calls it
            continue;
        }
        is_writing_ = false;
        co_return write_failed(count.error());
    }
    is_writing_ = false;
    if (closed_) co_return;
    if (ending_) static_cast<void>(stream_.shutdown_write());
    try {
        drained();
    } catch (const std::bad_alloc&) {
        fail_with(std::make_error_code(std::errc::not_enough_memory));
    }
}

task<> serve_callbacks(callbacks::handlers& of, tcp_stream stream, endpoint peer, endpoint local) {
    callback_connection served{of, stream, peer, local};
    co_await served.run();
}

} // namespace detail
} // namespace simplenet::v0
