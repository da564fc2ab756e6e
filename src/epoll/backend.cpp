// The epoll backend: registers descriptors edge-triggered, and attempts operations after their
// events. Only this file knows epoll. Layer epoll.

#include "epoll/foreign_waits.hpp"
#include "epoll/make_backend.hpp"
#include "io/attempts.hpp"
#include "io/connect_operation.hpp"
#include "io/io_queue.hpp"
#include "io/receive_pool.hpp"
#include "socket/setup.hpp"
#include "sys/calls.hpp"
#include "sys/epoll_calls.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/received.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {

namespace {

class epoll_backend final : public backend_driver {
public:
    epoll_backend(io_queue& owner, backend kind)
        : queue_{owner}
        , waits_{owner}
        , kind_{kind} {}
    ~epoll_backend() override {
        if (pool_ != nullptr) pool_->abandon();
    }

    result<> open(const loop_options& options) {
        const int epoll = sys::epoll_create();
        if (epoll < 0) return fail(sys::error_from(epoll));
        epoll_.reset(epoll);
        const int wake = sys::eventfd(0);
        if (wake < 0) return fail(sys::error_from(wake));
        wake_.reset(wake);
        slots_.emplace_back(); // slot 0, with a generation that no event has
        // Edge-triggered and never read: every write is a new edge.
        epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = wake_up}};
        const int added = sys::epoll_control(epoll, EPOLL_CTL_ADD, wake, &event);
        if (added < 0) return fail(sys::error_from(added));
        if (const int opened = open_waits(); opened < 0) return fail(sys::error_from(opened));
        // If a sandbox refuses the call, report it here: a turn cannot return an error.
        if (wait_in_ms(0) < 0 && sys::failure() != -EINTR)
            return fail(sys::error_from(sys::failure()));
        auto pool = receive_pool::create(options.receive_pool, nullptr);
        if (!pool) return fail(pool);
        pool_ = *pool;
        return {};
    }

    bool attempt_read(operation& op) noexcept override {
        if (!op.record->reads_directly() && tell_brought(op)) [[unlikely]]
            return true;
        if (op.kind == request::accept) return attempt_accept(static_cast<accept_base&>(op));
        // A buffer of the pool is claimed only when there is something to receive: an idle stream
        // holds no memory.
        return receive_by_call(op, *pool_);
    }

    bool attempt_connect(connect_operation& op) noexcept override {
        socket_record& record = *op.record;
        if (!std::exchange(op.called, true)) {
            const int outcome = sys::connect(record.fd, op.peer.data(), op.peer.size);
            // EINTR: connecting continues in the background (connect(2)).
            if (outcome == -EINPROGRESS || outcome == -EINTR) {
                record.writable = false;
                return false;
            }
            op.error = -outcome;
            return true;
        }
        const auto outcome = finish_connect(record.fd);
        if (outcome) return true;
        if (outcome.error() == std::errc::operation_would_block) {
            record.writable = false;
            return false;
        }
        op.error = outcome.error().value();
        return true;
    }

    void submit(operation& op) noexcept override {
        socket_record& record = *op.record;
        // Earlier events are remembered in the ready bits, and the first registration reports data
        // that is already there.
        const bool writes = !is_read(op.kind);
        if (record.epoll.slot != 0 && (!writes || record.epoll.watches_room)) return;
        // Fails without a free watch (epoll(7), max_user_watches) or without memory.
        const int outcome = record.epoll.slot == 0 ? add(record, writes) : watch_for_room(record);
        if (outcome < 0) return queue_.complete(op, -outcome);
    }

    void cancel(operation& op, stop_reason reason) noexcept override {
        // A last attempt before a deadline: bytes may be there although their event is not.
        if (reason == stop_reason::deadline) return queue_.attempt_later(op);
        queue_.complete(op, ECANCELED);
    }

    void submit(readiness_operation& op) noexcept override { waits_.submit(op); }
    void cancel(readiness_operation& op) noexcept override { waits_.cancel(op); }

    void retire(socket_record& record) noexcept override {
        if (record.epoll.slot == 0) return;
        record.receiving = false;
        const std::uint32_t number = std::exchange(record.epoll.slot, 0);
        registration& slot = slots_[number];
        slot.record = nullptr;
        ++slot.generation;
        free_slots_.push_back(number);
        // close(2) removes the registration, but only with the last duplicate (epoll(7), Q6). A
        // descriptor that stays open is removed here, and a listener, which a successor may share.
        if (record.is_kept() || record.kind == record_kind::listener) {
            static_cast<void>(sys::epoll_control(epoll_.get(), EPOLL_CTL_DEL, record.fd, nullptr));
        }
    }

    void take_ahead(socket_record&, std::vector<std::byte>&) override {} // it never receives ahead

    // An attempt asks the socket itself, so polling first gains nothing.
    std::size_t catch_up() noexcept override { return 0; }

    std::size_t poll(std::chrono::nanoseconds timeout) noexcept override {
        int count = timeout == forever     ? wait_in_ms(-1)
                    : timeout.count() == 0 ? wait_in_ms(0)
                    : timeout >= long_wait ? wait_in_ms(fewer_ms(timeout))
                                           : wait(timeout);
        if (count <= 0) [[unlikely]] {
            // An interrupted wait (SIGSTOP and SIGCONT, too) has not checked for events.
            if (count < 0 && sys::failure() == -EINTR) count = wait_in_ms(0);
            if (count <= 0) return no_events(count);
        }
        const auto total = static_cast<std::size_t>(count);
        dispatch(events_.data(), events_.data() + total);
        if (total == events_.size()) [[unlikely]]
            return poll_the_rest();
        return total;
    }

    void wake() noexcept override { sys::signal_eventfd(wake_.get()); }

    int native_handle() noexcept override { return epoll_.get(); }
    void announce() noexcept override { wake(); }
    bool busy() const noexcept override { return false; } // the kernel keeps no buffer of ours
    backend kind() const noexcept override { return kind_; }
    receive_pool& pool() noexcept override { return *pool_; }

private:
    static constexpr int most_rounds = 16;
    // Slot 0 with generations that it does not have: dispatch() drops such events as stale.
    static constexpr std::uint64_t wake_up = std::uint64_t{0xffffffff} << 32U;
    static constexpr std::uint64_t foreign = wake_up - (std::uint64_t{1} << 32U);

    // With the loop, although most never wait for a foreign descriptor: those that do, such as a
    // server's for a signal, need it when descriptors may be short.
    int open_waits() noexcept {
        const int inner = waits_.open();
        if (inner < 0) return inner;
        epoll_event event{.events = EPOLLIN, .data = {.u64 = foreign}};
        return sys::epoll_control(epoll_.get(), EPOLL_CTL_ADD, inner, &event);
    }

    /// The subject of an event, whose data is the slot's number and generation. A record may be
    /// gone while events for its descriptor still arrive.
    struct registration {
        socket_record* record = nullptr;
        std::uint32_t generation = 0;
    };

    std::uint32_t take_slot() {
        if (free_slots_.empty()) {
            if (slots_.size() == slots_.capacity()) slots_.reserve(2 * slots_.size());
            // Reserved here, because giving a slot back must not fail.
            free_slots_.reserve(slots_.capacity());
            slots_.emplace_back();
            return static_cast<std::uint32_t>(slots_.size() - 1);
        }
        const std::uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }

    static constexpr unsigned all_but_room = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;

    [[nodiscard]] epoll_event event_of(std::uint32_t slot, bool room) const noexcept {
        return {.events = room ? all_but_room | EPOLLOUT : all_but_room,
                .data = {.u64 = std::uint64_t{slots_[slot].generation} << 32U | slot}};
    }

    // Most descriptors need one epoll_ctl(2). The first write that waits adds EPOLLOUT: with it,
    // each new connection would report that there is room, and a Unix domain socket would report it
    // whenever its peer has read (unix_write_space() in the kernel).
    int add(socket_record& record, bool writes) noexcept {
        std::uint32_t slot = 0;
        try {
            slot = take_slot();
        } catch (const std::bad_alloc&) {
            return -ENOMEM;
        }
        epoll_event event = event_of(slot, writes);
        int added = sys::epoll_control(epoll_.get(), EPOLL_CTL_ADD, record.fd, &event);
        // The number belonged to a duplicate that was closed: its registration is still here.
        if (added == -EEXIST) [[unlikely]] {
            added = sys::epoll_control(epoll_.get(), EPOLL_CTL_MOD, record.fd, &event);
        }
        if (added < 0) {
            free_slots_.push_back(slot);
            return added;
        }
        slots_[slot].record = &record;
        record.epoll = {.slot = slot, .watches_room = writes};
        record.receiving = true;
        return 0;
    }

    // EPOLL_CTL_MOD also reports room that is there already, so no edge is lost.
    [[gnu::noinline, gnu::cold]] int watch_for_room(socket_record& record) noexcept {
        epoll_event event = event_of(record.epoll.slot, true);
        const int outcome = sys::epoll_control(epoll_.get(), EPOLL_CTL_MOD, record.fd, &event);
        record.epoll.watches_room = outcome == 0;
        return outcome;
    }

    /// The number of events, or -1 with the reason in sys::failure().
    int wait_in_ms(int timeout_ms) noexcept {
        return sys::epoll_wait(epoll_.get(), events_, timeout_ms);
    }
    // A shift makes a long wait up to a twentieth shorter; the next turn waits for the rest. A
    // conversion takes 25 instructions, and long waits rarely reach their end.
    static constexpr std::chrono::nanoseconds long_wait = std::chrono::seconds{1};
    static int fewer_ms(std::chrono::nanoseconds timeout) noexcept {
        return static_cast<int>(std::min<std::int64_t>(timeout.count() >> 20U, INT_MAX));
    }
    // A separate function, because poll() would have to save registers for it.
    [[gnu::noinline]] int wait(std::chrono::nanoseconds timeout) noexcept {
        if (nanosecond_waits_) {
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
            const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                                 .tv_nsec = static_cast<long>((timeout - seconds).count())};
            const int count = sys::epoll_wait(epoll_.get(), events_, limit);
            if (count >= 0 || sys::failure() == -EINTR) return count;
            nanosecond_waits_ = false; // an old kernel, or a sandbox that does not know the call
        }
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
        return wait_in_ms(static_cast<int>(std::min<std::int64_t>(ms, INT_MAX)));
    }

    [[gnu::cold]] static std::size_t no_events(int outcome) noexcept {
        SIMPLENET_EXPECTS(outcome == 0 || sys::failure() == -EINTR,
                          "the loop's epoll descriptor was closed");
        return 0;
    }

    // The batch was full: all waiting events are handled before timers expire. Bounded, so that
    // timers do expire.
    [[gnu::noinline, gnu::cold]] std::size_t poll_the_rest() noexcept {
        std::size_t total = events_.size();
        for (int round = 1; round < most_rounds; ++round) {
            const int count = wait_in_ms(0);
            if (count <= 0) break;
            const epoll_event* const end = events_.data() + count;
            for (const epoll_event* event = events_.data(); event != end; ++event)
                note_any(*event);
            total += static_cast<std::size_t>(count);
            if (static_cast<std::size_t>(count) < events_.size()) break;
        }
        return total;
    }

    /// The record that `event` is about, or null.
    [[nodiscard]] socket_record* record_of(const epoll_event& event) const noexcept {
        const registration& slot = slots_[static_cast<std::uint32_t>(event.data.u64)];
        // A closed descriptor still reports if a duplicate of it exists, for example after a fork;
        // its slot then has another generation.
        return slot.generation == event.data.u64 >> 32U ? slot.record : nullptr;
    }

    static constexpr unsigned usual_events = EPOLLIN | EPOLLOUT;

    // Only notes and queues: nothing is resumed, closed or freed while events are walked.
    void dispatch(const epoll_event* event, const epoll_event* const end) noexcept {
        for (; event != end; ++event) {
            const registration& slot = slots_[static_cast<std::uint32_t>(event->data.u64)];
            // Does not return here, so that the loop over usual events calls nothing.
            if ((event->events & ~usual_events) != 0 || slot.generation != event->data.u64 >> 32U)
                [[unlikely]]
                return dispatch_any(event, end);
            note(*slot.record, event->events);
        }
    }
    [[gnu::noinline]] void dispatch_any(const epoll_event* event, const epoll_event* end) noexcept {
        for (; event != end; ++event)
            note_any(*event);
    }
    void note_any(const epoll_event& event) noexcept {
        if (event.data.u64 == foreign) return waits_.collect();
        socket_record* const record = record_of(event);
        if (record == nullptr) return;
        note(*record, event.events);
        if ((event.events & ~usual_events) != 0) note_unusual(*record, event.events);
    }
    void note(socket_record& record, unsigned what) noexcept {
        if ((what & EPOLLIN) != 0) {
            record.readable = true;
            queue_.notify(record.reader);
        }
        if ((what & EPOLLOUT) != 0) {
            record.writable = true;
            queue_.notify(record.writer);
        }
    }
    void note_unusual(socket_record& record, unsigned what) noexcept {
        // Urgent data (tcp(7)): a read stops at its position although more data follows. Hang-up:
        // reads continue until they see the end or the error.
        record.reads_to_the_end = true;
        if ((what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
            record.readable = true;
            queue_.notify(record.reader);
        }
        if ((what & (EPOLLHUP | EPOLLERR)) != 0) {
            record.writable = true;
            queue_.notify(record.writer);
        }
    }
    /// Bytes and then the error that a socket brought along from another loop, or that readable()
    /// has found. False: `op` needs more than they are.
    [[gnu::noinline]] bool tell_brought(operation& op) noexcept {
        socket_record& record = *op.record;
        if (op.kind == request::read_exact && op.size == 0) return true;
        if (record.brought && take_brought(op, *pool_)) return true;
        const bool told = record.end != 0;
        if (told) op.error = std::exchange(record.end, 0);
        if (record.is_open()) record.reads = reading::directly;
        return told;
    }

    io_queue& queue_;
    epoll_waits waits_;
    const backend kind_; // epoll or the simulated backend
    unique_fd epoll_;
    unique_fd wake_;
    receive_pool* pool_ = nullptr;
    bool nanosecond_waits_ = true;
    std::vector<registration> slots_; // one for each registered descriptor, and free ones
    std::vector<std::uint32_t> free_slots_;
    std::array<epoll_event, 256> events_;
};

} // namespace

result<std::unique_ptr<backend_driver>> make_epoll_backend(io_queue& owner,
                                                           const loop_options& options) {
#if SIMPLENET_SEAMS
    const bool simulated = options.backend == simulated_backend;
    auto made =
        std::make_unique<epoll_backend>(owner, simulated ? simulated_backend : backend::epoll);
#else
    auto made = std::make_unique<epoll_backend>(owner, backend::epoll);
#endif
    if (auto opened = made->open(options); !opened) return fail(opened);
    return made;
}

} // namespace simplenet::v0::detail
