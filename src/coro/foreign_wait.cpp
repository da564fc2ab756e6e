#include <simplenet/coro/detail/foreign_wait.hpp>

#include <utility>

namespace simplenet::v0::detail {

foreign_wait::foreign_wait(std::coroutine_handle<> waiting, run_queue& queue) noexcept
    : caller{stand_in::begin(
          {}, inner,
          [](stand_in& resumed) noexcept { static_cast<foreign_wait&>(resumed).resume_waiting(); })}
    , waiting_{waiting} {
    queue.debug_check_thread();
    inner.begin(queue.top);
    queue.add(*this);
    if (!queue.dying) return;
    // The coroutine resumed by the last wait: all its waits share 1000 refusals.
    if (const chain* const before = owner_of(*queue.here)) refusals = before->refusals;
}

void foreign_wait::end() noexcept {
    over = true;
    inner.queue->chain_ended();
    delete this;
}

void foreign_wait::continue_with(std::coroutine_handle<> next) noexcept {
    next_ = next;
    inner.queue->push(*this);
}

void foreign_wait::run() noexcept {
    inner.queue->resume(std::exchange(next_, {}), inner);
}

/// The wait lasts until the coroutine is suspended again: its await_resume may need the scope, and
/// chains that it starts meanwhile belong here.
void foreign_wait::resume_waiting() noexcept {
    run_queue& queue = *inner.queue;
    scope* const before = std::exchange(queue.here, &inner);
    waiting_.resume();
    queue.here = before == &inner ? &queue.top : before;
    end();
}

} // namespace simplenet::v0::detail
