#include <simplenet/io/readiness.hpp>

#include "io/io_queue.hpp"
#include "sys/calls.hpp"

#include <cerrno>
#include <chrono>

#include <poll.h>

namespace simplenet::v0::detail {

void readiness_operation::start(std::coroutine_handle<> caller, scope& within) noexcept {
    suspend(caller, within);
    if (within.stopped()) {
        stopped = within.reason;
        error = ECANCELED;
        phase = state::finished;
        within.queue->refuse(*this, within);
        return;
    }
    phase = state::waiting;
    io_queue& home = io_queue::of(*within.queue);
    home.operation_began();
    if (fd < 0) return home.complete(*this, EBADF);
    home.driver().submit(*this);
}

void readiness_operation::run() noexcept {
    if (phase == state::looking) {
        // The event may be there although it is not yet reported.
        const short events = waits_to == direction::read ? POLLIN : POLLOUT;
        const int happened = sys::poll(fd, events, std::chrono::steady_clock::time_point::min());
        error = happened > 0 ? 0 : happened < 0 ? -happened : ECANCELED;
        phase = state::finished;
    }
    resume();
}

void readiness_operation::on_stop(stop_reason reason) noexcept {
    if (stopped != stop_reason::none) return;
    switch (phase) {
    case state::idle:
    case state::looking:
    case state::finished:
        return;
    case state::waiting:
        stopped = reason;
        io_queue::of(*within_->queue).driver().cancel(*this);
        return;
    }
}

void readiness_operation::describe(std::string& text) {
    text +=
        waits_to == direction::read ? "async_wait_readable on fd " : "async_wait_writable on fd ";
    text += std::to_string(fd);
}

result<> readiness_operation::await_resume() const noexcept {
    if (error == 0) return {};
    if (error == ECANCELED) {
        return fail(error_of(stopped == stop_reason::none ? stop_reason::canceled : stopped));
    }
    return fail(std::error_code{error, std::system_category()});
}

} // namespace simplenet::v0::detail
