#pragma once
// on_processor: a part of a test that runs on one processor.

#include <gtest/gtest.h>

#include <sched.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Runs this thread on one processor while it lives.
class on_processor {
public:
    explicit on_processor(int number) {
        EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(number, &one);
        moved = ::sched_setaffinity(0, sizeof one, &one) == 0;
    }
    on_processor(const on_processor&) = delete;
    on_processor& operator=(const on_processor&) = delete;
    ~on_processor() { ::sched_setaffinity(0, sizeof before_, &before_); }

    bool moved = false; // false: the processor is not ours

private:
    cpu_set_t before_;
};

} // namespace simplenet::v0::testing
