#include <simplenet/io/detail/datagram_operations.hpp>

#include "io/attempts.hpp"
#include "io/io_queue.hpp"
#include "socket/datagrams.hpp"
#include "sys/calls.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>

namespace simplenet::v0::detail {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds shortest_pause = 1ms;
constexpr std::chrono::milliseconds longest_pause = 50ms;

template <class Value>
const Value* address_of(const std::optional<Value>& value) noexcept {
    return value ? &*value : nullptr;
}

// A receive of one datagram does not tell whether more are left, so `readable` stays set: the edge
// for them may have passed.
template <class About>
bool receive_one(operation& op, About& about) noexcept {
    const ssize_t outcome = datagrams::receive_one(op.record->fd, {op.data, op.size}, about);
    return outcome < 0 ? receive_failed(op, outcome) : true;
}

template <class Slot>
bool receive_some(operation& op, std::span<Slot> into) noexcept {
    const ssize_t outcome = datagrams::receive_some(op.record->fd, into);
    if (outcome < 0) return receive_failed(op, outcome);
    op.moved = static_cast<std::size_t>(outcome);
    // Fewer than requested: no further datagram was there yet (recvmmsg(2)). An error that arrived
    // meanwhile has its own edge.
    if (op.moved < std::min(into.size(), datagrams::most_at_once)) op.record->readable = false;
    return true;
}

/// Repeats `attempt`, which sends some of the rest, until all of `whole` is sent or there is no
/// room.
template <class Attempt, class Failed>
bool send_all(operation& op, std::size_t whole, Attempt attempt, Failed failed) noexcept {
    for (int round = 0; op.moved != whole; ++round) {
        if (round == most_tries) return false; // the record stays writable: continues next turn
        const ssize_t outcome = attempt();
        if (outcome < 0) return failed(outcome);
        op.moved += static_cast<std::size_t>(outcome);
    }
    return true;
}

/// send_failed(), but distinguishes a full queue of the receiver from a full send buffer.
bool send_message_failed(operation& op, ssize_t outcome, send_retry& retry) noexcept {
    const bool own_buffer_has_room =
        outcome == -EAGAIN &&
        sys::poll(op.record->fd, POLLOUT, std::chrono::steady_clock::time_point{}) > 0;
    if (!own_buffer_has_room) return send_failed(op, outcome);
    retry.arm(op);
    return false;
}

} // namespace

bool perform_receive(operation& op, udp_datagram& about) noexcept {
    return receive_one(op, about);
}
bool perform_receive(operation& op, local_message& about) noexcept {
    return receive_one(op, about);
}
bool perform_receive(operation& op, std::span<incoming_datagram> into) noexcept {
    return receive_some(op, into);
}
bool perform_receive(operation& op, std::span<incoming_message> into) noexcept {
    return receive_some(op, into);
}

bool perform_send(operation& op, const std::optional<endpoint>& to,
                  const udp_send_options& options) noexcept {
    const ssize_t outcome =
        datagrams::send_one(op.record->fd, {op.data, op.size}, address_of(to), options);
    if (outcome < 0) return send_failed(op, outcome);
    op.moved = op.size;
    return true;
}

bool perform_send(operation& op, const std::optional<local_endpoint>& to,
                  send_retry& retry) noexcept {
    const ssize_t outcome = datagrams::send_one(op.record->fd, {op.data, op.size}, address_of(to));
    if (outcome < 0) return send_message_failed(op, outcome, retry);
    op.moved = op.size;
    return true;
}

bool perform_send(operation& op, std::span<const outgoing_datagram> from, send_retry&) noexcept {
    return send_all(
        op, from.size(),
        [&] {
            return datagrams::send_some(op.record->fd, from.subspan(op.moved), op.record->segments);
        },
        [&](ssize_t outcome) { return send_failed(op, outcome); });
}

bool perform_send(operation& op, std::span<const outgoing_message> from,
                  send_retry& retry) noexcept {
    return send_all(
        op, from.size(),
        [&] { return datagrams::send_some(op.record->fd, from.subspan(op.moved)); },
        [&](ssize_t outcome) { return send_message_failed(op, outcome, retry); });
}

bool perform_send_segmented(operation& op, std::size_t segment_size,
                            const std::optional<endpoint>& to,
                            const udp_send_options& options) noexcept {
    const const_buffer from{op.data, op.size};
    return send_all(
        op, op.size,
        [&] {
            return datagrams::send_segments(op.record->fd, from.subspan(op.moved), segment_size,
                                            address_of(to), options, op.record->segments);
        },
        [&](ssize_t outcome) { return send_failed(op, outcome); });
}

void send_retry::arm(operation& sender) noexcept {
    sender_ = &sender;
    sender.phase = operation::state::sleeping;
    pause_ = std::clamp(2 * pause_, shortest_pause, longest_pause);
    cancel();
    sender.record->home->timers.insert_after(*this, pause_);
}

void send_retry::expired() noexcept {
    if (sender_->phase != operation::state::sleeping) return; // over, or about to be attempted
    sender_->record->home->attempt_later(*sender_);
}

} // namespace simplenet::v0::detail
