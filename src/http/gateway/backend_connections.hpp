#pragma once
// backend_connections: the connections of one loop to the backends of a gateway. Layer http,
// private.

#include "http/gateway/backend_set.hpp"
#include "http/gateway/client_watch.hpp"
#include "http/server/fair_places.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/connection_pool.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace simplenet::v0::http::detail {

/// For each backend and loop.
struct connection_limits {
    /// Idle connections that are kept. 0: none.
    std::size_t keep = 8;
    /// Connections in all. At least 1. A client gets one more only while it has fewer than are
    /// free.
    std::size_t most = 128;
    /// For connecting, including the lookup of a name; 0: no limit of ours.
    std::chrono::nanoseconds connect = std::chrono::seconds{5};
    /// An idle connection is closed after so long; 0: no limit of ours.
    std::chrono::nanoseconds idle = std::chrono::seconds{60};
};

/// Connects to a backend, by TCP without delays or by a Unix socket.
///
/// @param to  Borrowed until the await returns.
/// @param limit  0: none.
/// @par Errors
/// Those of async_connect(); `std::errc::timed_out`, of the generic category: the limit.
[[nodiscard]] task<result<any_stream>> connect_to_backend(const backend_address& to,
                                                          std::chrono::nanoseconds limit);

/// A connection to a backend.
using backend_connection = pooled<any_stream>;

/// Whether a request may be sent again when a kept connection turns out to have ended.
enum class repeatable : bool { no, yes };

/// Lends connections to each backend of a set, and keeps them for later requests.
///
/// Promises: never more than `most` connections to a backend, and `keep` idle ones; clients share
/// the places as fair_places says; an idle connection that the backend has ended or on which it has
/// sent something is not lent. For a request that may be sent again the loop's last poll decides;
/// otherwise the kernel is asked.
///
/// Loop thread only. Lent connections may outlive it, but leases with a place must not.
class backend_connections {
public:
    /// @param of  Shared: its addresses are used while a connection is being made.
    backend_connections(std::shared_ptr<const backend_set> of, const connection_limits& limits);
    backend_connections(const backend_connections&) = delete;
    backend_connections& operator=(const backend_connections&) = delete;
    ~backend_connections() {
        closing_.stop();
        looking_.stop();
    }

    /// Lends a connection to the backend of `at`, which gets a place for it, unless it has one.
    ///
    /// @param at    Borrowed until the await returns. Keeps the place until it ends, so the
    ///              connection must end before it.
    /// @param by    For whom.
    /// @param wait  Time left for a place if there is none, and for connecting then; borrowed.
    ///              Reduced by the time spent.
    /// @param may_repeat  If not, the kernel is asked before an idle connection is lent.
    ///
    /// @par Errors
    /// - `std::errc::resource_unavailable_try_again`: none within the wait. The backend has not
    ///   failed: it is busy.
    /// - `std::errc::operation_canceled`, and the error of a deadline of the caller.
    /// - Those of connect_to_backend().
    [[nodiscard]] now_or_task<result<backend_connection>>
    borrow(backend_lease& at, const client_key& by, std::chrono::nanoseconds& wait,
           repeatable may_repeat = repeatable::no);

    /// Lends a new connection, and closes those that are idle here: they may all have died with the
    /// process that they led to, without being told. Otherwise as borrow().
    [[nodiscard]] now_or_task<result<backend_connection>>
    borrow_new(backend_lease& at, const client_key& by, std::chrono::nanoseconds& wait);

    /// Tells `watch` soon after its client has left, if its place, which is that of `at`, is
    /// wanted. Until it is unlinked.
    void watch(const backend_lease& at, client_watch& watch) noexcept {
        to_[at.index()].watches.push_back(watch);
    }

    /// Keeps `connection`, or closes it if enough are idle. Its place remains with `at`.
    ///
    /// @pre As pooled::give_back().
    void give_back(const backend_lease& at, backend_connection connection);

    /// Connections to the backend at `index` that are lent, idle, or being made.
    [[nodiscard]] std::size_t size(std::size_t index) const noexcept {
        return to_[index].pool->size();
    }
    /// The idle ones among them.
    [[nodiscard]] std::size_t idle(std::size_t index) const noexcept {
        return to_[index].idle.size();
    }
    /// Takes a place for a connection to the backend of `at`, unless it has one.
    ///
    /// @return Whether `at` has one now. Otherwise borrow() has to wait for it.
    [[nodiscard]] bool take_place(backend_lease& at, const client_key& by) {
        return at.place() || to_[at.index()].places.take(by, at.place());
    }
    /// Whether take_place() would succeed.
    [[nodiscard]] bool has_room(std::size_t index, const client_key& by) const noexcept {
        return to_[index].places.has_room(by);
    }

private:
    using pool = connection_pool<any_stream>;
    using clock = std::chrono::steady_clock;

    struct idle_connection {
        backend_connection connection;
        clock::time_point since;
    };
    // The pool only makes the connections. To it, the idle ones here are lent: it would need a turn
    // of the loop to see whether they are alive, which costs as much as sending a request. One
    // recv(2) leaves a window of two system calls in which an end is missed (and, on io_uring,
    // bytes that the kernel has received ahead); without it the window begins at the last poll.
    // What a backend sends unasked in the window is taken for an answer.
    struct backend_pool {
        explicit backend_pool(std::size_t most) noexcept
            : places{most} {}

        std::unique_ptr<connection_pool<any_stream>> pool;
        std::vector<idle_connection> idle; // the one used last is the last
        fair_places places;
        simplenet::detail::intrusive_list<client_watch> watches;
    };

    template <void (backend_connections::*Act)() noexcept>
    class timer final : public simplenet::detail::timer_node {
    public:
        explicit timer(backend_connections& of) noexcept
            : of_{of} {}
        void arm(simplenet::detail::timer_wheel& in, clock::time_point deadline) noexcept {
            wheel_ = &in;
            in.insert(*this, deadline);
        }
        /// Also when the loop is gone.
        void stop() noexcept {
            if (armed()) wheel_->cancel(*this);
        }

    private:
        void expired() noexcept override { (of_.*Act)(); }

        backend_connections& of_;
        simplenet::detail::timer_wheel* wheel_ = nullptr; // gone if the timer is not armed
    };

    /// Takes an idle connection on which the backend has said nothing, and closes those before it.
    [[nodiscard]] std::optional<backend_connection> take_idle(std::size_t index,
                                                              repeatable may_repeat);
    /// For a lease with a place. Nothing: not an idle one, but a new one.
    [[nodiscard]] now_or_task<result<backend_connection>>
    lend(const backend_lease& at, std::optional<repeatable> may_repeat);
    /// As lend(), once the lease has got a place.
    [[nodiscard]] task<result<backend_connection>>
    lend_in_turn(backend_lease& at, client_key by, std::optional<repeatable> may_repeat);
    [[nodiscard]] task<result<backend_connection>>
    wait_to_borrow(backend_lease& at, client_key by, std::chrono::nanoseconds& wait,
                   std::optional<repeatable> may_repeat);
    /// Closes the connections that have been idle for too long.
    void close_overdue() noexcept;
    /// For the connection that has been idle longest.
    void arm_closing() noexcept;
    /// Tells requests in progress whose places others wait for that their clients have left.
    void look_for_left_clients() noexcept;
    void arm_looking() noexcept;

    const std::shared_ptr<const backend_set> of_;
    const std::size_t keep_;
    const std::chrono::nanoseconds idle_;
    std::deque<backend_pool> to_; // by the index of the backend
    timer<&backend_connections::close_overdue> closing_{*this};
    timer<&backend_connections::look_for_left_clients> looking_{*this};
};

} // namespace simplenet::v0::http::detail
