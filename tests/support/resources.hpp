#pragma once
// resources: what must not grow when a test is over.

#include "support/descriptors.hpp"

#include <simplenet/coro/detail/frame_allocator.hpp>

#include <cstddef>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// What this process holds of things that leak.
struct resources {
    std::ptrdiff_t frames; // coroutine frames of this thread
    std::size_t descriptors;

    static resources now() { return {detail::live_frames(), open_descriptors()}; }
};

/// Expects that nothing was left over since `before`.
inline void expect_nothing_left(const resources& before) {
    const resources after = resources::now();
    EXPECT_EQ(after.frames, before.frames) << "coroutine frames were left over";
    EXPECT_EQ(after.descriptors, before.descriptors) << "descriptors were left open";
}

} // namespace simplenet::v0::testing
