#include <simplenet/tls/detail/handshake_limit.hpp>

#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>

#include <new>
#include <utility>

namespace simplenet::v0::tls::detail {

// Not in an anonymous namespace, see src/net/sockets.cpp.
/// Runs in the next turn, and again in the one after if that used a step.
task<> renew(std::shared_ptr<async_semaphore> left, unsigned steps) {
    for (;;) {
        left->release(steps - left->available());
        if (left->available() == steps) co_return;
        co_await yield();
    }
}

void handshake_limit::renew_next_turn() noexcept {
    try {
        spawn(renew(left_, steps_per_turn_)).detach();
    } catch (const std::bad_alloc&) {
        left_->release(); // a turn without this limit
    }
}

} // namespace simplenet::v0::tls::detail
