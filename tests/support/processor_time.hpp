#pragma once
// processor_time: the processor time that this process has used so far.

#include <chrono>

#include <ctime>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// All threads of the process together.
inline std::chrono::nanoseconds processor_time() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

} // namespace simplenet::v0::testing
