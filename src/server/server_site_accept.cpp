// How a site accepts connections, and when it leaves them in the backlog.

#include "io/io_queue.hpp"
#include "server/server_site.hpp"
#include "sys/calls.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/readiness.hpp>
#include <simplenet/socket/detail/name_calls.hpp>
#include <simplenet/socket/detail/option_calls.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <cstddef>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <poll.h>

namespace simplenet::v0::detail {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Bounds the drain of a listener whose backlog refills as fast as it is drained.
constexpr std::size_t most_drained = 65'536;

} // namespace

task<> server_site::accept_until_stop(listening_socket& listener) {
    const bool with_place = core_->settings.waits_when_full();
    for (;;) {
        try {
            task<> accepting = with_place ? accept_with_place(listener) : accept_from(listener);
            co_await std::move(accepting);
            co_return;
        } catch (const std::bad_alloc&) { // the memory may be there later
        }
        const auto slept = co_await async_sleep(pause_after_error);
        if (!slept) co_return;
    }
}

task<> server_site::accept_from(listening_socket& listener) {
    const bool limited = core_->settings.max_connections != 0;
    for (;;) {
        auto accepted = co_await listener.accept();
        if (accepted) {
            if (limited && !core_->take_place()) {
                refuse(*std::move(accepted));
            } else {
                admit(*std::move(accepted));
            }
            if (handler_->can_spare && room_->lacks_any()) {
                const bool goes_on = co_await wait_for_descriptors();
                if (!goes_on) co_return;
            }
            continue;
        }
        // Without a stop it is an error of the listener, which may pass.
        if (co_await this_task::stop_requested()) co_return;
        static_cast<void>(co_await async_sleep(pause_after_error));
    }
}

// The connection stays in the backlog until there is a place for it: so the listener is watched,
// and a place is taken before accept(2).
task<> server_site::accept_with_place(listening_socket& listener) {
    for (;;) {
        const auto readable = co_await async_wait_readable(listener.native_handle());
        const bool stopped = co_await this_task::stop_requested();
        if (stopped) co_return;
        if (readable) {
            const bool taken = co_await wait_for_place(clock::time_point::max());
            if (!taken) co_return;
            auto accepted = listener.try_accept();
            if (accepted) {
                admit(*std::move(accepted));
                if (handler_->can_spare && room_->lacks_any()) {
                    const bool goes_on = co_await wait_for_descriptors();
                    if (!goes_on) co_return;
                }
                continue;
            }
            core_->return_place();
            if (accepted.error() == std::errc::operation_would_block &&
                !listener.is_out_of_descriptors()) {
                continue; // the client has given up
            }
        }
        static_cast<void>(co_await async_sleep(pause_after_error));
    }
}

task<bool> server_site::wait_for_descriptors() {
    for (;;) {
        const bool is_crowded = room_->is_crowded();
        const auto until = clock::now() + (is_crowded ? 1s : 100ms);
        loop_room::relief room{*room_};
        const auto made = co_await with_deadline(room.wait(), until);
        if (made) co_return true;
        if (made.error() != errc::deadline_exceeded) co_return false;
        // Something else than connections may keep the descriptors for ever.
        if (!is_crowded || !room_->lacks_any() || !room_->is_scarce()) co_return true;
    }
}

task<bool> server_site::wait_for_place(clock::time_point until) {
    if (core_->take_place()) co_return true;
    const loop_room::place_wait wait{waiting_};
    for (;;) {
        place_freed_.reset();
        if (core_->take_place()) co_return true;
        core_->lacks_place.store(true, std::memory_order_seq_cst);
        if (core_->take_place()) co_return true;
        room_->lacks_place(waiting_);
        const auto freed = co_await with_deadline(place_freed_.wait(), until);
        if (!freed) co_return false;
    }
}

task<> server_site::drain(listening_socket& listener) {
    const bool with_place = core_->settings.waits_when_full();
    const bool limited = core_->settings.max_connections != 0;
    listener.stop_accepting_ahead();
    for (std::size_t count = 0; count < most_drained;) {
        if (with_place && !core_->take_place()) {
            if (sys::poll(listener.native_handle(), POLLIN, clock::time_point{}) <= 0) co_return;
            const bool taken = co_await wait_for_place(core_->deadline());
            if (!taken) co_return;
        }
        auto accepted = listener.try_accept();
        if (accepted) {
            ++count;
            if (limited && !with_place && !core_->take_place()) {
                refuse(*std::move(accepted));
            } else {
                admit(*std::move(accepted));
            }
            continue;
        }
        if (with_place) core_->return_place();
        if (accepted.error() != std::errc::operation_would_block) co_return;
        if (listener.is_out_of_descriptors()) {
            // accept(2) fails that way even if nothing waits.
            const bool waits = sys::poll(listener.native_handle(), POLLIN, clock::time_point{}) > 0;
            if (!waits || clock::now() >= core_->deadline()) co_return;
            const auto slept = co_await async_sleep(pause_after_error);
            if (!slept) co_return;
            continue;
        }
        if (!listener.is_accepting_ahead()) co_return;
        co_await yield();
    }
}

void server_site::refuse(unique_fd socket) noexcept {
    slot_.accepted.fetch_add(1, std::memory_order_relaxed);
    slot_.refused.fetch_add(1, std::memory_order_relaxed);
    if (!stopping_) room_->lacks_place(waiting_);
    tell_refused(socket.get(), "the server is full");
    static_cast<void>(options::set_linger(socket.get(), std::chrono::seconds{0}));
}

void server_site::tell_refused(int connection, const char* why) const noexcept {
    const event_hook& hook = io_queue::of(*scope_->queue).on_event;
    if (!hook) return;
    std::string client;
    std::string server;
    try {
        server = core_->name();
        const auto from = names::ip_accepted_from(connection);
        if (from) client = " from " + from->to_string();
    } catch (const std::bad_alloc&) { // then without names
    }
    hook.tell({.kind = loop_event_kind::connection_refused, .text = {}, .descriptor = connection},
              "the server at %s refuses a connection%s: %s", server.c_str(), client.c_str(), why);
}

void server_site::admit(unique_fd socket) noexcept {
    slot_.accepted.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t number = core_->next_number();
    const std::size_t to = choose();
    // Here, whichever loop gets it: it is this listener that has to leave some.
    room_->look_at_descriptors(socket.get(), to == index_);
    seat place{core_, to};
    if (to == index_) {
        take(std::move(socket), std::move(place), number);
    } else {
        pass(to, std::move(socket), std::move(place), number);
    }
}

} // namespace simplenet::v0::detail
