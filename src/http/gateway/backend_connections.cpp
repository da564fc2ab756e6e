#include "http/gateway/backend_connections.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/detail/local_byte_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

task<result<any_stream>> connect_over_tcp(const tcp_address& to) {
    connect_options with;
    with.no_delay = true;
    result<tcp_stream> made = co_await async_connect(to.host, to.port, with);
    if (!made) co_return fail(made);
    co_return any_stream{*std::move(made)};
}

task<result<any_stream>> connect_locally(const local_endpoint& to) {
    auto made = co_await simplenet::detail::connect_for_bytes(to);
    if (!made) co_return fail(made);
    co_return any_stream{*std::move(made)};
}

} // namespace

task<result<any_stream>> connect_to_backend(const backend_address& to,
                                            std::chrono::nanoseconds limit) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const auto* const over_tcp = std::get_if<tcp_address>(&to);
    task<result<any_stream>> connecting = over_tcp != nullptr
                                              ? connect_over_tcp(*over_tcp)
                                              : connect_locally(std::get<local_endpoint>(to));
    if (limit <= std::chrono::nanoseconds::zero()) limit = std::chrono::nanoseconds::max();
    result<any_stream> made = co_await with_timeout(std::move(connecting), limit);
    // Not the error of the caller's own deadline, nor of a wait for a place.
    if (!made && made.error() == simplenet::errc::deadline_exceeded && !within.stopped()) {
        co_return fail(std::errc::timed_out);
    }
    co_return made;
}

backend_connections::backend_connections(std::shared_ptr<const backend_set> of,
                                         const connection_limits& limits)
    : of_{std::move(of)}
    , keep_{limits.keep}
    , idle_{limits.idle > limits.idle.zero() ? limits.idle : std::chrono::nanoseconds::max()} {
    constexpr auto unlimited = std::numeric_limits<std::size_t>::max();
    const pool_options with{.per_key = unlimited, .total = unlimited};
    for (std::size_t each = 0; each < of_->size(); ++each) {
        auto connect = [of = of_, each, limit = limits.connect](std::string_view) {
            return connect_to_backend(of->address(each), limit);
        };
        backend_pool& added = to_.emplace_back(std::max<std::size_t>(limits.most, 1));
        added.pool = std::make_unique<pool>(std::move(connect), with);
        added.idle.reserve(std::min<std::size_t>(keep_, 64));
    }
}

std::optional<backend_connection> backend_connections::take_idle(std::size_t index,
                                                                 repeatable may_repeat) {
    using simplenet::detail::silence;
    const silence known =
        may_repeat == repeatable::yes ? silence::by_last_poll : silence::by_kernel;
    std::vector<idle_connection>& from = to_[index].idle;
    while (!from.empty()) {
        backend_connection kept = std::move(from.back().connection);
        from.pop_back();
        // Otherwise it has ended, or there are bytes that nobody asked for.
        if (!simplenet::detail::stream_access::is_silent(*kept, known)) continue;
        simplenet::detail::pooled_access::mark_reused(kept);
        return kept;
    }
    return std::nullopt;
}

now_or_task<result<backend_connection>> backend_connections::borrow(backend_lease& at,
                                                                    const client_key& by,
                                                                    std::chrono::nanoseconds& wait,
                                                                    repeatable may_repeat) {
    if (take_place(at, by)) return lend(at, may_repeat);
    return wait_to_borrow(at, by, wait, may_repeat);
}

now_or_task<result<backend_connection>>
backend_connections::borrow_new(backend_lease& at, const client_key& by,
                                std::chrono::nanoseconds& wait) {
    if (take_place(at, by)) return lend(at, std::nullopt);
    return wait_to_borrow(at, by, wait, std::nullopt);
}

now_or_task<result<backend_connection>>
backend_connections::lend(const backend_lease& at, std::optional<repeatable> may_repeat) {
    if (!may_repeat) {
        to_[at.index()].idle.clear();
    } else if (std::optional<backend_connection> kept = take_idle(at.index(), *may_repeat)) {
        return result<backend_connection>{*std::move(kept)};
    }
    return to_[at.index()].pool->borrow(at.name());
}

task<result<backend_connection>>
backend_connections::lend_in_turn(backend_lease& at, client_key by,
                                  std::optional<repeatable> may_repeat) {
    fair_places::turn turn{to_[at.index()].places, by, at.place()};
    const result<> granted = co_await std::move(turn);
    if (!granted) co_return fail(granted);
    now_or_task<result<backend_connection>> lending = lend(at, may_repeat);
    co_return co_await std::move(lending);
}

task<result<backend_connection>>
backend_connections::wait_to_borrow(backend_lease& at, client_key by,
                                    std::chrono::nanoseconds& wait,
                                    std::optional<repeatable> may_repeat) {
    if (wait <= std::chrono::nanoseconds::zero()) {
        co_return fail(std::errc::resource_unavailable_try_again);
    }
    arm_looking();
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const auto begin = simplenet::detail::timed_queue::present();
    // If the place has no connection yet, connecting is part of the wait.
    task<result<backend_connection>> lending = lend_in_turn(at, by, may_repeat);
    result<backend_connection> lent = co_await with_timeout(std::move(lending), wait);
    wait -= simplenet::detail::timed_queue::present() - begin;
    if (!lent && lent.error() == simplenet::errc::deadline_exceeded && !within.stopped()) {
        wait = {};
        co_return fail(std::errc::resource_unavailable_try_again);
    }
    co_return lent;
}

void backend_connections::give_back(const backend_lease& at, backend_connection connection) {
    backend_pool& to = to_[at.index()];
    if (idle(at.index()) >= keep_) return;
    const auto now = simplenet::detail::timed_queue::present();
    const bool is_oldest = to.idle.empty();
    to.idle.push_back({std::move(connection), now});
    // A timer that stayed until it is due would be the processor's next one for the last
    // milliseconds: the kernel would program the hardware for it whenever this loop sleeps, and
    // again when it wakes.
    const bool is_due_soon = is_oldest && closing_.deadline() - now < idle_ - idle_ / 8;
    if (closing_.armed() && !is_due_soon) return;
    closing_.stop();
    arm_closing();
}

void backend_connections::arm_closing() noexcept {
    using simplenet::detail::timed_queue;
    auto* const queue = timed_queue::of_this_thread();
    if (queue == nullptr) return;
    const auto end_of_time = clock::time_point::max();
    auto first = end_of_time;
    for (const backend_pool& each : to_)
        if (!each.idle.empty()) first = std::min(first, each.idle.front().since);
    if (first == end_of_time) return;
    closing_.arm(queue->timers, idle_ < end_of_time - first ? first + idle_ : end_of_time);
}

void backend_connections::arm_looking() noexcept {
    using simplenet::detail::timed_queue;
    // Most waits are shorter.
    constexpr std::chrono::milliseconds soon{100};
    auto* const queue = timed_queue::of_this_thread();
    if (looking_.armed() || queue == nullptr) return;
    looking_.arm(queue->timers, timed_queue::present() + soon);
}

void backend_connections::look_for_left_clients() noexcept {
    bool does_anyone_wait = false;
    for (backend_pool& each : to_) {
        if (!each.places.has_waiters()) continue;
        does_anyone_wait = true;
        tell_left_clients(each.watches);
    }
    if (does_anyone_wait) arm_looking();
}

void backend_connections::close_overdue() noexcept {
    const auto now = simplenet::detail::timed_queue::present();
    for (backend_pool& each : to_) {
        std::erase_if(each.idle,
                      [&](const idle_connection& kept) { return now - kept.since >= idle_; });
    }
    arm_closing();
}

} // namespace simplenet::v0::http::detail
