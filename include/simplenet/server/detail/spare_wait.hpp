#pragma once
// spare_wait: how a connection waits that may end when there is no room for new ones. Layer server,
// private.

#include <simplenet/coro/detail/endable_wait.hpp>
#include <simplenet/server/server_stop.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// For a client that has begun something and not yet asked for anything. Its connection counts as
/// waiting since this was made: further bytes do not make it younger. Fails with
/// `errc::deadline_exceeded` when its place or its descriptor is needed. A server that shuts down
/// does not end it.
class spare_wait final : public endable_wait, private stop_waiter {
public:
    /// @param socket  Its client may not have received an earlier answer yet. -1: there was none.
    explicit spare_wait(const scope& within, int socket = -1) noexcept
        : socket_{socket} {
        static_cast<void>(wait_for_server_stop(within, *this));
    }
    ~spare_wait() { unlink(); }

private:
    void server_stops() noexcept override {}
    bool make_room() noexcept override { return end(stop_reason::deadline); }
    bool may_lose() const noexcept override { return socket_ >= 0 && has_more_to_take(socket_); }

    int socket_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
