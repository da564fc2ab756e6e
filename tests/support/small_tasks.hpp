#pragma once
// The smallest tasks, for tests of what is done with tasks.

#include <simplenet/coro/task.hpp>

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

} // namespace simplenet::v0::testing
