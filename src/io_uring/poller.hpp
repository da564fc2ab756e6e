#pragma once
// poller: waits until sockets are ready. Layer io_uring, private.

#include "io_uring/entries.hpp"

namespace simplenet::v0::detail {

/// For what no entry can do, or does better (docs/development/decisions/0014): the operation waits
/// until its socket is ready, and is attempted then.
///
/// Nearly always that is a poll of its own, which reports what is there. An error that nobody takes
/// (an error queue, recvmsg(2)) would end each of them at once, so such a socket is watched by one
/// multishot poll from then on. It reports changes: an operation that waits for the next one must
/// have found nothing since the last.
class poller {
public:
    poller(io_queue& owner, entries& kernel) noexcept
        : queue_{owner}
        , kernel_{kernel} {}

    /// @param events  POLLIN or POLLOUT.
    void submit(operation& op, short events) noexcept;
    /// The poll of `op` is over.
    void finish(operation& op) noexcept;

    /// Reports changes of `record` to whoever waits on it. Says what is there already.
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
