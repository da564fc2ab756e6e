#pragma once
// acceptor: accepts connections for the listeners of a loop. Layer io_uring, private.

#include "io_uring/entries.hpp"
#include "io_uring/poller.hpp"

#include <simplenet/io/detail/accept_operation.hpp>

namespace simplenet::v0::detail {

/// Nearly always by one multishot accept per listener, which accepts connections ahead of accept():
/// accept_state::ahead.
class acceptor {
public:
    acceptor(io_queue& owner, entries& kernel, poller& polls) noexcept
        : queue_{owner}
        , kernel_{kernel}
        , polls_{polls} {}

    /// Like backend_driver::attempt_read().
    bool attempt(accept_base& op) noexcept;
    /// `op` waits.
    void submit(operation& op) noexcept;
    void completed(socket_record& listener, uring::completion seen) noexcept;
    /// Like backend_driver::stop_accepting_ahead().
    void stop(socket_record& listener) noexcept {
        kernel_.cancel(listener, listener.uring.inflow, subject::accept);
    }
    /// Stops accepting, and closes connections that were accepted ahead.
    void retire(socket_record& listener) noexcept;

private:
    void push(socket_record& listener, int connection) noexcept;

    io_queue& queue_;
    entries& kernel_;
    poller& polls_;
};

} // namespace simplenet::v0::detail
