#include <simplenet/stream/queued_writer.hpp>

namespace simplenet::v0::detail {

// --- the waits ---------------------------------------------------------------------------------

writer_wait::writer_wait(writer_core& of, goal what) noexcept
    : writer_{&of}
    , position_{of.enqueued_}
    , goal_{what} {}

bool writer_wait::start(std::coroutine_handle<> caller, scope& within) {
    writer_core& writer = *writer_;
    if (within.stopped()) {
        suspend(caller, within);
        error_ = error_of(within.reason);
        within.queue->refuse(*this, within);
        return true;
    }
    if (goal_ == goal::ended) writer.begin_ending();
    if (writer.reached(*this) && within.queue->take_inline_turn()) return false;
    suspend(caller, within);
    if (writer.reached(*this)) {
        within.queue->push(*this); // it has used its share of this turn
    } else if (const std::error_code error = writer.no_longer(*this)) {
        end(error);
    } else {
        writer.waiters_.push_back(*this);
    }
    return true;
}

void writer_wait::end(std::error_code error) noexcept {
    unlink();
    error_ = error;
    within_->queue->push(*this);
}

void writer_wait::on_stop(stop_reason reason) noexcept {
    if (linked()) end(error_of(reason)); // otherwise it is on the ready list
}

bool writer_core::reached(const writer_wait& waiter) const noexcept {
    switch (waiter.goal_) {
    case writer_wait::goal::flushed:
        return sent_ >= waiter.position_;
    case writer_wait::goal::writable:
        return phase_ == phase::open && queue_.size() < marks_.low;
    case writer_wait::goal::ended:
        return phase_ == phase::ended;
    }
    return false;
}

/// Why `waiter` can no longer reach its goal; no error if it still can.
std::error_code writer_core::no_longer(const writer_wait& waiter) const noexcept {
    if (phase_ == phase::broken) return error_;
    return waiter.goal_ == writer_wait::goal::writable ? refusal() : std::error_code{};
}

void writer_core::tell_waiters() noexcept {
    waiters_.for_each([this](writer_wait& waiter) {
        if (reached(waiter)) {
            waiter.end({});
        } else if (const std::error_code error = no_longer(waiter)) {
            waiter.end(error);
        }
    });
}

// --- the queue ---------------------------------------------------------------------------------

writer_core::writer_core(watermarks marks) noexcept
    : marks_{marks} {
    SIMPLENET_EXPECTS(marks.low != 0, "a queued_writer with a low watermark of 0 bytes would never "
                                      "be writable again");
    SIMPLENET_EXPECTS(marks.low <= marks.high, "the low watermark of a queued_writer is above its "
                                               "high one");
    SIMPLENET_EXPECTS(marks.high <= marks.limit, "the high watermark of a queued_writer is above "
                                                 "its limit");
}

std::error_code writer_core::refusal() const noexcept {
    switch (phase_) {
    case phase::open:
        return {};
    case phase::ending:
    case phase::ended:
        return std::make_error_code(std::errc::broken_pipe); // as after shutdown(2)
    case phase::broken:
        break;
    }
    return error_;
}

namespace {

void take(write_queue& queue, const_buffer& from) {
    queue.append(from);
}
template <class Container>
void take(write_queue& queue, Container& from) {
    queue.adopt(from);
}

} // namespace

template <class Bytes>
result<backpressure> writer_core::enqueue_any(Bytes& bytes) {
    if (const std::error_code refused = refusal()) return fail(refused);
    if (bytes.size() > marks_.limit - queue_.size()) return fail(errc::queue_full);
    const std::size_t size = bytes.size();
    if (size != 0) wake_sender(); // first: if this throws, nothing was taken
    take(queue_, bytes);
    enqueued_ += size;
    if (queue_.size() >= marks_.high) high_ = true;
    return high_ ? backpressure::high_watermark : backpressure::normal;
}

void writer_core::begin_ending() {
    if (phase_ != phase::open) return;
    wake_sender();
    phase_ = phase::ending;
    tell_waiters();
}

result<backpressure> writer_core::enqueue(const_buffer from) {
    return enqueue_any(from);
}

result<backpressure> writer_core::enqueue(std::string& bytes) {
    return enqueue_any(bytes);
}

result<backpressure> writer_core::enqueue(std::vector<std::byte>& bytes) {
    return enqueue_any(bytes);
}

// --- the sender --------------------------------------------------------------------------------

// Not at once but in the next turn: everything enqueued until then is sent with it, in one call
// (docs/development/decisions). It could not be resumed here anyway, inside a running coroutine.
void writer_core::wake_sender() {
    run_queue& queue = run_queue::require_current();
    SIMPLENET_EXPECTS(inner.queue == nullptr || inner.queue == &queue,
                      "a queued_writer belongs to the loop that used it first");
    switch (sender_) {
    case sender::unstarted: {
        task<> sending = send();
        frame_.emplace(sending);
        inner.begin(queue.top);
        queue.add(*this);
        sender_ = sender::waking;
        if (queue.may_start(*this, *queue.here)) queue.push(*this);
        return;
    }
    case sender::parked:
        queue.chain_continues();
        over = false;
        sender_ = sender::waking;
        queue.push(*this);
        return;
    case sender::waking:
    case sender::sending:
        return;
    case sender::ended:
    case sender::done:
        break; // the phase is no longer open
    }
}

void writer_core::run() noexcept {
    switch (sender_) {
    case sender::waking:
        if (!held_) break; // dropped meanwhile
        sender_ = sender::sending;
        if (parked_) {
            inner.queue->resume(std::exchange(parked_, nullptr), inner);
        } else {
            frame_->start(*this);
        }
        return;
    case sender::ended: // not in finished(), where the frame is in use
        sender_ = sender::done;
        unlink();
        frame_.reset();
        if (!held_) delete this;
        return;
    default:
        return;
    }
    inner.queue->chain_ended();
    unlink();
    delete this;
}

void writer_core::park(std::coroutine_handle<> sender) noexcept {
    parked_ = sender;
    sender_ = sender::parked;
    over = true;
    inner.queue->chain_ended(); // does not keep the loop running
}

void writer_core::wrote(std::size_t count) noexcept {
    SIMPLENET_EXPECTS(count != 0, "write_some() of a stream wrote nothing");
    queue_.consume(count);
    sent_ += count;
    if (queue_.size() < marks_.low) high_ = false;
    if (!waiters_.empty()) tell_waiters();
}

void writer_core::failed(std::error_code error) noexcept {
    phase_ = phase::broken;
    error_ = error;
    queue_.clear();
    high_ = false;
    tell_waiters();
}

void writer_core::ended(result<> outcome) noexcept {
    if (!outcome) return failed(outcome.error());
    phase_ = phase::ended;
    tell_waiters();
}

void writer_core::finished() noexcept {
    run_queue& queue = *inner.queue;
    if (std::exception_ptr thrown = frame_->promise().exception()) {
        failed(std::make_error_code(std::errc::io_error));
        queue.report_unhandled(std::move(thrown));
    }
    sender_ = sender::ended;
    over = true;
    queue.chain_ended();
    inner.end();
    queue.push(*this);
}

void writer_core::abandon() noexcept {
    if (sender_ == sender::waking || sender_ == sender::sending) inner.queue->chain_ended();
    sender_ = sender::done;
    frame_.reset();
    inner.end();
    if (phase_ != phase::broken) failed(std::make_error_code(std::errc::bad_file_descriptor));
    if (!held_) delete this;
}

void writer_core::drop() noexcept {
    held_ = false;
    const auto canceled = std::make_error_code(std::errc::operation_canceled);
    waiters_.for_each([&](writer_wait& waiter) { waiter.end(canceled); });
    switch (sender_) {
    case sender::waking:
        close_stream();
        queue_.clear();
        return;
    case sender::sending:
        // The kernel may read the queued bytes until the write has ended.
        close_stream();
        inner.stop(stop_reason::canceled);
        return;
    case sender::ended:
        close_stream();
        return;
    case sender::parked:
        unlink();
        frame_.reset();
        break;
    case sender::unstarted:
    case sender::done:
        break;
    }
    delete this;
}

} // namespace simplenet::v0::detail
