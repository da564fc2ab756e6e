#pragma once
// backend_search: finds a connection to a backend for a request. Layer http, private.

#include "http/gateway/backend_connections.hpp"
#include "http/gateway/backend_set.hpp"
#include "http/server/fair_places.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/backend.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// What follows from an error of backend_search::borrow(), unless the caller was stopped.
struct no_connection {
    unsigned status;        // of the answer, if no other backend gives one
    gateway_event kind;     // `failed`: the backend is to blame; otherwise this side is
    std::string_view doing; // for the report
};

/// Chooses backends for a request, one after the other, and lends it connections to them.
///
/// Promises: a request waits for a place only if all backends in use had none for its client on
/// this loop when it chose one, and for no longer than its limit at all of them together. After
/// that it still gets a place that has become free elsewhere meanwhile.
///
/// Loop thread only.
class backend_search {
public:
    /// @param client  Who asks.
    /// @param wait    For places, and for connecting once one was waited for.
    backend_search(const backend_set& among, backend_connections& over, const ip_address& client,
                   std::chrono::nanoseconds wait) noexcept
        : among_{among}
        , over_{over}
        , client_{key_of(client)}
        , wait_{wait} {}

    /// The next backend to ask, one with a free place if there is one. Nothing: all were tried.
    [[nodiscard]] std::optional<backend_lease> next() noexcept;
    /// As backend_connections::borrow(), or borrow_new().
    [[nodiscard]] now_or_task<result<backend_connection>>
    borrow(backend_lease& at, bool is_new, repeatable may_repeat = repeatable::no) {
        has_waited_ = !take_place(at) || has_waited_;
        if (is_new) return over_.borrow_new(at, client_, wait_);
        return over_.borrow(at, client_, wait_, may_repeat);
    }
    /// As backend_connections::take_place().
    [[nodiscard]] bool take_place(backend_lease& at) { return over_.take_place(at, client_); }
    /// Whether borrow() had to wait for a place: the client may have left meanwhile.
    [[nodiscard]] bool has_waited() const noexcept { return has_waited_; }
    [[nodiscard]] static no_connection judge(std::error_code why) noexcept;

private:
    const backend_set& among_;
    backend_connections& over_;
    client_key client_;
    std::chrono::nanoseconds wait_; // what is left
    backend_marks tried_;
    bool has_waited_ = false;
};

} // namespace simplenet::v0::http::detail
