#pragma once
// poller: waits until sockets are ready. Layer io_uring, private.

#include "io_uring/entries.hpp"

namespace simplenet::v0::detail {

/// For operations without an entry of their own, or better without one
/// (docs/development/decisions/0017): the operation waits until its socket is ready, and is
/// attempted then.
///
/// Nearly always each operation has its own poll, which reports what is already there. An error
/// that is never taken (an error queue, recvmsg(2)) would end each poll at once, so such a socket
/// is watched by one multishot poll from then on. That poll only reports changes: an operation may
/// wait for the next change only if it has found nothing since the last one.
class poller {
public:
    poller(io_queue& owner, entries& kernel) noexcept
        : queue_{owner}
        , kernel_{kernel} {}

    /// @param events  POLLIN or POLLOUT.
    void submit(operation& op, short events) noexcept;
    /// The poll of `op` has ended.
    void finish(operation& op) noexcept;

    /// Reports changes of `record` to its waiting operations, and at first what is already there.
    void watch(socket_record& record) noexcept;
    void unwatch(socket_record& record) noexcept {
        kernel_.cancel(record, record.uring.edges, subject::edges);
    }
    void watch_completed(socket_record& record, uring::completion seen) noexcept;

private:
    io_queue& queue_;
    entries& kernel_;
};

} // namespace simplenet::v0::detail
