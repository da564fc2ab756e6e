#pragma once
// spare_wait: how a connection waits that may end when there is no room for new ones. Layer server,
// private.

#include <simplenet/coro/scoped.hpp>
#include <simplenet/server/server_stop.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// For a client that has begun something and not yet asked for anything. Its connection counts as
/// waiting since this was made: further bytes do not make it younger. A server that shuts down does
/// not end it.
class spare_wait final : private stop_waiter {
public:
    explicit spare_wait(const scope& within) noexcept {
        static_cast<void>(wait_for_server_stop(within, *this));
    }
    spare_wait(const spare_wait&) = delete;
    spare_wait& operator=(const spare_wait&) = delete;
    ~spare_wait() { unlink(); }

    /// `part` of the wait, which fails with `errc::deadline_exceeded` when the connection has to
    /// end. What has arrived wins. One at a time.
    template <class Awaitable>
    [[nodiscard]] auto of(Awaitable part) {
        return scoped_awaiter<Awaitable, policy>{std::move(part), *this};
    }
    /// Whether the connection has to end, because its place or its descriptor is needed.
    [[nodiscard]] bool must_end() const noexcept { return must_end_; }

private:
    class policy {
    public:
        explicit policy(spare_wait& of) noexcept
            : of_{&of} {}
        static stop_reason inherits(stop_reason reason) noexcept { return reason; }
        void entered(scope& inner) noexcept { of_->waits_in_ = &inner; }
        static void suspended(scope&) noexcept {}
        void leaving() noexcept { of_->waits_in_ = nullptr; }
        static decltype(auto) finish(auto&& resume) { return resume(); }

    private:
        spare_wait* of_;
    };

    void server_stops() noexcept override {}
    bool make_room() noexcept override {
        if (waits_in_ == nullptr) return false;
        must_end_ = true;
        waits_in_->stop(stop_reason::deadline);
        return true;
    }

    scope* waits_in_ = nullptr;
    bool must_end_ = false;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
