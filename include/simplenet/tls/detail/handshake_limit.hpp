#pragma once
// handshake_limit: how much of a turn handshakes may use. Layer tls.

#include <simplenet/core/abi.hpp>
#include <simplenet/sync/async_semaphore.hpp>

#include <memory>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls::detail {

/// Limits the handshake steps in one turn of the loop. Others wait for the next turn, first come,
/// first served. A handshake that waits for its peer takes no part. Loop thread only.
class handshake_limit {
public:
    /// 0: no limit.
    explicit handshake_limit(unsigned steps_per_turn)
        : steps_per_turn_{steps_per_turn}
        , left_{std::make_shared<async_semaphore>(steps_per_turn)} {}

    [[nodiscard]] bool is_set() const noexcept { return steps_per_turn_ != 0; }
    /// An awaitable of `result<>`. @pre is_set().
    [[nodiscard]] auto take() noexcept {
        if (left_->available() == steps_per_turn_) renew_next_turn();
        return left_->acquire();
    }

private:
    void renew_next_turn() noexcept;

    unsigned steps_per_turn_;
    std::shared_ptr<async_semaphore> left_;
};

} // namespace simplenet::v0::tls::detail

#pragma GCC visibility pop
