#include "runtime/forks.hpp"

#include "runtime/loop.hpp"

#include <pthread.h>

namespace simplenet::inline v0::detail {

namespace {

unsigned generation = 0; // written in a child that has no other threads yet

void in_child() noexcept {
    ++generation;
    if (auto* const running = static_cast<loop*>(run_queue::current())) running->forked();
}

} // namespace

unsigned fork_generation() noexcept {
    [[maybe_unused]] static const int watching = ::pthread_atfork(nullptr, nullptr, in_child);
    return generation;
}

} // namespace simplenet::inline v0::detail
