#include "http/gateway/backend_connections.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/detail/local_byte_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <algorithm>
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

/// Counts itself.
class counted {
public:
    explicit counted(std::size_t& in) noexcept
        : in_{in} {
        ++in_;
    }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { --in_; }

private:
    std::size_t& in_;
};

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
    , most_{std::max<std::size_t>(limits.most, 1)}
    , keep_{limits.keep}
    , idle_{limits.idle > limits.idle.zero() ? limits.idle : std::chrono::nanoseconds::max()}
    , connect_{limits.connect}
    , to_(of_->size()) {
    // Each call of borrow() has a limit of its own.
    const pool_options with{
        .per_key = most_, .total = most_, .idle = idle_, .wait = std::chrono::nanoseconds::max()};
    for (std::size_t each = 0; each < of_->size(); ++each) {
        auto connect = [of = of_, each, limit = limits.connect](std::string_view) {
            return connect_to_backend(of->address(each), limit);
        };
        to_[each].pool = std::make_unique<pool>(std::move(connect), with);
        to_[each].idle.reserve(std::min<std::size_t>(keep_, 64));
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

now_or_task<result<backend_connection>> backend_connections::borrow(const backend_lease& at,
                                                                    std::chrono::nanoseconds& wait,
                                                                    repeatable may_repeat) {
    if (std::optional<backend_connection> kept = take_idle(at.index(), may_repeat))
        return result<backend_connection>{*std::move(kept)};
    return borrow_from_pool(at, wait);
}

task<result<backend_connection>>
backend_connections::borrow_from_pool(const backend_lease& at, std::chrono::nanoseconds& wait) {
    backend_pool& from = to_[at.index()];
    const bool is_full = !has_room(at.index());
    if (is_full && wait <= std::chrono::nanoseconds::zero()) {
        co_return fail(std::errc::resource_unavailable_try_again);
    }
    const counted waits{from.borrowing};
    task<result<backend_connection>> borrowing = from.pool->borrow(at.name());
    if (!is_full) co_return co_await std::move(borrowing);
    arm_looking();
    // If the place that was waited for has no connection yet, connecting is part of the wait.
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const auto begin = simplenet::detail::timed_queue::present();
    result<backend_connection> lent = co_await with_timeout(std::move(borrowing), wait);
    wait -= simplenet::detail::timed_queue::present() - begin;
    if (!lent && lent.error() == simplenet::errc::deadline_exceeded && !within.stopped()) {
        wait = {};
        co_return fail(std::errc::resource_unavailable_try_again);
    }
    co_return lent;
}

task<result<backend_connection>> backend_connections::borrow_new(const backend_lease& at,
                                                                 std::chrono::nanoseconds& wait) {
    using simplenet::detail::pooled_access;
    to_[at.index()].idle.clear();
    task<result<backend_connection>> borrowing = borrow_from_pool(at, wait);
    result<backend_connection> lent = co_await std::move(borrowing);
    if (!lent || !lent->is_reused()) co_return lent;
    // Another request gave it back meanwhile. Its backend may be about to close it, too.
    pooled_access::close(*lent);
    task<result<any_stream>> connecting = connect_to_backend(of_->address(at.index()), connect_);
    result<any_stream> made = co_await std::move(connecting);
    if (!made) co_return fail(made);
    pooled_access::renew(*lent, *std::move(made));
    co_return lent;
}

void backend_connections::give_back(const backend_lease& at, backend_connection connection) {
    backend_pool& to = to_[at.index()];
    if (idle(at.index()) >= keep_) return;
    if (to.borrowing != 0) return connection.give_back(); // whoever waits longest gets it
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
    using simplenet::detail::run_queue;
    using simplenet::detail::timed_queue;
    auto* const queue = static_cast<timed_queue*>(run_queue::current());
    if (queue == nullptr) return;
    const auto end_of_time = clock::time_point::max();
    auto first = end_of_time;
    for (const backend_pool& each : to_)
        if (!each.idle.empty()) first = std::min(first, each.idle.front().since);
    if (first == end_of_time) return;
    closing_.arm(queue->timers, idle_ < end_of_time - first ? first + idle_ : end_of_time);
}

void backend_connections::arm_looking() noexcept {
    using simplenet::detail::run_queue;
    using simplenet::detail::timed_queue;
    // Most waits are shorter.
    constexpr std::chrono::milliseconds soon{100};
    auto* const queue = static_cast<timed_queue*>(run_queue::current());
    if (looking_.armed() || queue == nullptr) return;
    looking_.arm(queue->timers, timed_queue::present() + soon);
}

void backend_connections::look_for_left_clients() noexcept {
    bool does_anyone_wait = false;
    for (std::size_t each = 0; each != to_.size(); ++each) {
        if (!is_full(each)) continue;
        does_anyone_wait = true;
        tell_left_clients(to_[each].watches);
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
