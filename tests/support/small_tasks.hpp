#pragma once
// The smallest tasks, for tests that spawn, join or stop tasks.

#include "support/gate.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>

#include <stdexcept>

namespace simplenet::v0::testing {

inline task<> nothing() {
    co_return;
}
inline task<int> value(int of) {
    co_return of;
}
inline task<result<>> failing(errc code) {
    co_return fail(code);
}
inline task<> late_thrower() {
    co_await yield();
    throw std::runtime_error{"child"};
}
inline task<> wait_at(gate& at) {
    (void)co_await at.wait();
}
inline task<result<>> pass(gate& at) {
    auto passed = co_await at.wait();
    if (!passed) co_return fail(passed);
    co_return {};
}

} // namespace simplenet::v0::testing
