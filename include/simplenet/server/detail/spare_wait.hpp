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
    explicit spare_wait(const scope& within) noexcept {
        static_cast<void>(wait_for_server_stop(within, *this));
    }
    ~spare_wait() { unlink(); }

private:
    void server_stops() noexcept override {}
    bool make_room() noexcept override { return end(stop_reason::deadline); }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
