#include "io/io_queue.hpp"

#include "io/receive_pool.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace simplenet::v0::detail {

namespace {

constexpr std::chrono::milliseconds shortest_accept_pause{10};
constexpr std::chrono::milliseconds longest_accept_pause{500};

} // namespace

io_queue::~io_queue() {
    for (auto* list : {&resting_, &spare_}) {
        while (!list->empty())
            delete &list->pop_front();
    }
}

void io_queue::use(std::unique_ptr<backend_driver> driver) noexcept {
    driver_ = std::move(driver);
    waker_ = driver_.get();
    pool_ = &driver_->pool();
    reads_directly_ = driver_->kind() != backend::io_uring;
}

// --- operations ----------------------------------------------------------------------------------

void io_queue::complete(operation& op, int error) noexcept {
    socket_record& of = *op.record;
    if (error == ECANCELED && op.stopped != stop_reason::none) {
        error = error_number(op.stopped);
    }
    // Any failure on a socket that we are closing is reported as our close.
    if (error != 0 && !of.is_open()) error = ECANCELED;
    op.error = error;
    of.slot_of(op) = nullptr;
    op.phase = operation::state::finished;
    operation_ended();
    if (error == 0) touch(of);
    push(op);
    advance_close(of);
}

void io_queue::complete(readiness_operation& op, int error) noexcept {
    operation_ended();
    op.error = error;
    op.phase = readiness_operation::state::finished;
    push(op);
}

void io_queue::give_up(readiness_operation& op) noexcept {
    if (op.stopped != stop_reason::deadline) return complete(op, ECANCELED);
    operation_ended();
    op.phase = readiness_operation::state::looking;
    push(op);
}

void io_queue::stamp_touched(std::chrono::steady_clock::time_point now) noexcept {
    while (!touched_.empty()) {
        idle_state& idle = touched_.pop_front();
        idle.last = now;
        const socket_record& record = idle.record;
        if (record.writer != nullptr) idle.unsent = sys::unsent_bytes(record.fd);
        if (idle.limit > std::chrono::nanoseconds::zero() && !idle.armed() && record.waits()) {
            timers.insert_after(idle, idle.limit);
        }
    }
}

void io_queue::add_figures(loop_metrics& into) const noexcept {
    into.live_operations = live_operations_ + live_lookups_;
    into.accept_pauses = accept_pauses_;
    into.open_descriptors = open_records_;
    into.receive_pool_leased = pool().leases();
    into.receive_pool_overflow = pool().overflow();
}

// --- sockets -------------------------------------------------------------------------------------

socket_record& io_queue::new_record(int descriptor) {
    auto* const home = static_cast<io_queue*>(run_queue::current());
    if (home == nullptr || home->spare_.empty()) return *new socket_record{descriptor};
    socket_record& reused = home->spare_.pop_front(); // the newest: it is in the cache
    std::destroy_at(&reused);
    return *std::construct_at(&reused, descriptor);
}

void io_queue::bind(socket_record& record) noexcept {
    record.home = record.open_on = this;
    record.driver = driver_.get();
    if (reads_directly_ && record.end == 0 && !record.brought) record.reads = reading::directly;
    records_.push_back(record);
    ++open_records_;
}

namespace {

/// Whether closing drops bytes that nobody has read, for which the peer gets a reset (RFC 1122,
/// 4.2.2.13). close(2) would send it, but it comes after shutdown(2), and does not find bytes that
/// were received ahead.
bool loses_bytes(const socket_record& record) noexcept {
    if (record.kind != record_kind::stream) return false; // shutdown(2) is all there is
    if (!record.ahead.empty()) return true;
    std::byte next{};
    return sys::recv(record.fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

} // namespace

void io_queue::close(socket_record& record) noexcept {
    debug_check_thread();
    if (record.is_open()) begin_close(record, record_state::closing);
}

void io_queue::release(socket_record& record) noexcept {
    debug_check_thread();
    begin_close(record, record_state::releasing);
}

void io_queue::begin_close(socket_record& record, record_state how) noexcept {
    record.state = how;
    record.open_on = nullptr;
    record.reads = reading::by_driver;
    if (is_inherited()) [[unlikely]] {
        // The parent continues the connection: do not tell the peer anything.
        close_descriptor(std::exchange(record.fd, -1));
        return;
    }
    if (!record.is_kept()) drop_brought(record);
    ++closing_;
    // The kernel keeps a socket alive, and does not tell the peer, as long as anything is in flight
    // on it.
    const bool in_flight =
        record.reader != nullptr || record.writer != nullptr || record.kernel_references != 0;
    // A listener or a datagram socket has no peer to tell, and shutdown(2) would end it for every
    // process that shares it.
    if (in_flight && !record.is_kept() && record.is_stream()) {
        static_cast<void>(record.aborts || loses_bytes(record)
                              ? sys::disconnect(record.fd)
                              : sys::shutdown(record.fd, SHUT_RDWR));
    }
    driver_->retire(record);
    for (operation* op : {record.reader, record.writer}) {
        if (op != nullptr) op->on_stop(stop_reason::canceled);
    }
    if (record.kind == record_kind::listener && record.fd >= 0) { // an accept is in flight
        // Once close() has returned, the address is free and no peer can connect.
        driver_->let_go(record);
        close_number(record);
    }
    advance_close(record);
}

void io_queue::take_unread(socket_record& record, std::vector<std::byte>& unread) {
    if (record.brought) {
        const const_buffer rest =
            const_buffer{record.brought->bytes}.subspan(record.brought->taken);
        unread.insert(unread.end(), rest.data(), rest.data() + rest.size());
        record.brought.reset();
    }
    if (record.home != nullptr) record.driver->take_ahead(record, unread);
}

void io_queue::drop_brought(socket_record& record) noexcept {
    if (!record.brought) return;
    record.brought.reset();
    if (record.fd >= 0) static_cast<void>(sys::disconnect(record.fd));
}

void io_queue::close_number(socket_record& record) noexcept {
    if (record.accepting) {
        timers.cancel(*record.accepting);
        static_cast<list_hook<paused_tag>&>(record).unlink(); // another one resumes, below
    }
    close_descriptor(std::exchange(record.fd, -1));
    if (!paused_.empty()) resume_accepting(paused_.front());
}

void io_queue::finish_close(socket_record& record) noexcept {
    if (record.reader != nullptr || record.writer != nullptr || record.kernel_references != 0 ||
        record.is_over() || is_inherited()) {
        return;
    }
    record.state = record.is_kept() ? record_state::released : record_state::closed;
    --closing_;
    --open_records_;
    if (record.idle) timers.cancel(*record.idle);
    if (!record.is_kept() && record.fd >= 0) close_number(record);
    while (!record.closed_waiters.empty())
        push(record.closed_waiters.pop_front());
    free_if_unused(record);
}

void io_queue::drop(socket_record& record) noexcept {
    debug_check_thread();
    record.held = false;
    if (record.is_open()) return begin_close(record, record_state::closing);
    // Nobody takes what a release() has kept: memory was short, or its coroutine was destroyed. The
    // peer learns that bytes are lost, and their buffers go back to the pool.
    if (record.is_kept() && record.fd >= 0) close_released(record);
    free_if_unused(record);
}

void io_queue::close_released(socket_record& record) noexcept {
    if (is_inherited()) [[unlikely]] { // as in begin_close()
        return close_descriptor(std::exchange(record.fd, -1));
    }
    drop_brought(record);
    record.state = record.is_over() ? record_state::closed : record_state::closing;
    driver_->retire(record);
}

void io_queue::free_if_unused(socket_record& record) noexcept {
    if (record.held || !record.is_over() || !record.closed_waiters.empty()) return;
    if (record.fd >= 0) close_descriptor(std::exchange(record.fd, -1));
    if (record.idle) static_cast<list_hook<touched_tag>&>(*record.idle).unlink();
    record.unlink_all();
    rest(record);
}

void io_queue::rest(socket_record& record) noexcept {
    resting_.push_back(record);
    if (resting_count_ == records_at_rest) {
        spare_.push_front(resting_.pop_front());
    } else {
        ++resting_count_;
    }
}

void io_queue::discard(socket_record& record) noexcept {
    auto* const here = static_cast<io_queue*>(run_queue::current());
    drop_brought(record);
    if (record.fd >= 0) close_descriptor(std::exchange(record.fd, -1));
    if (here == nullptr) {
        delete &record;
        return;
    }
    record.state = record_state::closed;
    record.held = false;
    here->rest(record);
}

void io_queue::note_touched(idle_state& idle) noexcept {
    timers.attend();
    touched_.push_back(idle);
}

void io_queue::pause_accepting(socket_record& listener, int error) noexcept {
    ++accept_pauses_;
    accept_state& accepting = *listener.accepting;
    accepting.pause = std::clamp<std::chrono::nanoseconds>(
        accepting.pause * 2, shortest_accept_pause, longest_accept_pause);
    static_cast<list_hook<paused_tag>&>(listener).unlink();
    paused_.push_back(listener);
    timers.cancel(accepting);
    timers.insert_after(accepting, accepting.pause);
    shortage_observers_.for_each([](shortage_observer& each) { each.accepting_pauses(); });
    if (!on_event) return;
    char reason[96];
    const auto pause_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(accepting.pause).count();
    on_event.tell({.kind = loop_event_kind::accept_paused,
                   .text = {},
                   .error = {error, std::system_category()},
                   .duration = accepting.pause,
                   .descriptor = listener.fd},
                  "accepting on fd %d pauses for %lld ms: %s", listener.fd,
                  static_cast<long long>(pause_ms), describe_errno(error, reason));
}

void io_queue::resume_accepting(socket_record& listener) noexcept {
    accept_state& accepting = *listener.accepting;
    timers.cancel(accepting);
    static_cast<list_hook<paused_tag>&>(listener).unlink();
    listener.readable = true;
    notify(listener.reader);
}

// --- the end -------------------------------------------------------------------------------------

// Pops instead of walking: retiring one record may end another one, which then is a spare and no
// longer in the list.
void io_queue::retire_records() noexcept {
    intrusive_list<socket_record> records;
    records.splice_back(records_);
    while (!records.empty()) {
        socket_record& record = records.pop_front();
        records_.push_back(record);
        driver_->retire(record);
    }
}

void io_queue::drain_kernel() noexcept {
    retire_records();
    while (driver_->busy())
        driver_->poll(forever);
}

void io_queue::abandon_operations() noexcept {
    records_.for_each([this](socket_record& record) {
        for (operation** slot : {&record.reader, &record.writer}) {
            if (*slot == nullptr) continue;
            std::exchange(*slot, nullptr)->phase = operation::state::idle;
            operation_ended();
        }
    });
}

void io_queue::orphan_records() noexcept {
    SIMPLENET_DEBUG_EXPECTS(live_operations_.own() == 0, "a loop lost count of its operations");
    open_records_ = 0;
    while (!records_.empty()) {
        socket_record& record = records_.pop_front();
        record.unlink_all();
        drop_brought(record);
        if (record.fd >= 0) close_descriptor(std::exchange(record.fd, -1));
        record.state = record_state::closed;
        record.home = record.open_on = nullptr;
        record.idle.reset();
        record.accepting.reset();
        if (!record.held) delete &record;
    }
}

} // namespace simplenet::v0::detail
