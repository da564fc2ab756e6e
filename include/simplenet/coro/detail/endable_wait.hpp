#pragma once
// endable_wait: something else than a stop or a deadline ends what a coroutine waits for. Layer
// coro, private.

#include <simplenet/coro/scoped.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A base of what finds out that a wait has to end. Its parts follow each other.
class endable_wait {
public:
    endable_wait(const endable_wait&) = delete;
    endable_wait& operator=(const endable_wait&) = delete;

    /// `part`, which fails as stopped when the wait has to end. What has arrived wins.
    template <class Awaitable>
    [[nodiscard]] auto of(Awaitable part) {
        return scoped_awaiter<Awaitable, policy>{std::move(part), *this};
    }
    [[nodiscard]] bool must_end() const noexcept { return must_end_; }

protected:
    endable_wait() noexcept = default;
    ~endable_wait() = default;

    /// In a turn of the loop. False: no part is awaited.
    bool end(stop_reason as) noexcept {
        if (waits_in_ == nullptr) return false;
        must_end_ = true;
        waits_in_->stop(as);
        return true;
    }

private:
    class policy {
    public:
        explicit policy(endable_wait& of) noexcept
            : of_{&of} {}
        static stop_reason inherits(stop_reason reason) noexcept { return reason; }
        void entered(scope& inner) noexcept { of_->waits_in_ = &inner; }
        static void suspended(scope&) noexcept {}
        void leaving() noexcept { of_->waits_in_ = nullptr; }
        static decltype(auto) finish(auto&& resume) { return resume(); }

    private:
        endable_wait* of_;
    };

    scope* waits_in_ = nullptr;
    bool must_end_ = false;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
