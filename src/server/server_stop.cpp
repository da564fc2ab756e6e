#include <simplenet/server/server_stop.hpp>

#include "server/loop_room.hpp"
#include "server/server_site.hpp"
#include "sys/calls.hpp"

namespace simplenet::v0::detail {

bool is_server_stopping(const scope& within) noexcept {
    const server_site* const site = server_site::around(within);
    return site != nullptr && site->is_stopping();
}

bool should_connection_end(const scope& within) noexcept {
    const server_site* const site = server_site::around(within);
    return site != nullptr && (site->is_stopping() || site->is_short());
}

bool has_more_to_take(int socket) noexcept {
    return sys::unsent_bytes(socket) > 0;
}

void note_lack_of_descriptors() noexcept {
    if (loop_room* const here = loop_room::find()) here->lacks_descriptors();
}

void ask_for_spare_descriptors(spare_holder& holder) noexcept {
    if (loop_room* const here = loop_room::find()) here->add(holder);
}

bool wait_for_server_stop(const scope& within, stop_waiter& waiter) noexcept {
    server_site* const site = server_site::around(within);
    if (site == nullptr) return true;
    if (site->is_stopping()) return false;
    site->wait_for_stop(waiter);
    return true;
}

bool server_stop_operation::start(std::coroutine_handle<> caller, scope& within) noexcept {
    suspend(caller, within);
    if (within.stopped()) {
        stopped_ = within.reason;
        within.queue->refuse(*this, within);
        return true;
    }
    server_site* const site = server_site::around(within);
    if (site != nullptr && site->is_stopping()) {
        if (!within.queue->take_inline_turn()) {
            within.queue->push(*this);
            return true;
        }
        within.current = nullptr;
        return false;
    }
    waiting_ = true;
    if (site != nullptr) site->wait_for_stop(*this);
    return true;
}

void server_stop_operation::server_stops() noexcept {
    waiting_ = false;
    within_->queue->push(*this);
}

bool server_stop_operation::make_room() noexcept {
    if (is_spare_) on_stop(stop_reason::canceled);
    return is_spare_;
}

void server_stop_operation::on_stop(stop_reason reason) noexcept {
    if (!std::exchange(waiting_, false)) return; // over, and on the ready list
    unlink();
    stopped_ = reason;
    within_->queue->push(*this);
}

} // namespace simplenet::v0::detail
