#pragma once
// resources: counts that must not have grown after a test.

#include "support/descriptors.hpp"

#include <simplenet/coro/detail/frame_allocator.hpp>

#include <cstddef>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// The resources of this process that could leak.
struct resources {
    std::ptrdiff_t frames; // coroutine frames of this thread
    std::size_t descriptors;

    static resources now() { return {detail::live_frames(), open_descriptors()}; }
};

/// Expects that nothing has leaked since `before`.
inline void expect_nothing_left(const resources& before) {
    const resources after = resources::now();
    EXPECT_EQ(after.frames, before.frames) << "coroutine frames leaked";
    EXPECT_EQ(after.descriptors, before.descriptors) << "descriptors were left open";
}

} // namespace simplenet::v0::testing
