#pragma once
// unhandled_count: how many exceptions reached loop_options::on_unhandled.

#include <atomic>
#include <exception>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Counts from its construction on. The hook has no context, so there is one count in the process.
class unhandled_count {
public:
    unhandled_count() noexcept { count_ = 0; }
    unhandled_count(const unhandled_count&) = delete;
    unhandled_count& operator=(const unhandled_count&) = delete;

    /// For the options of a loop. Any thread.
    static void hook(std::exception_ptr) { ++count_; }
    [[nodiscard]] int operator()() const noexcept { return count_; }

private:
    static inline std::atomic<int> count_ = 0;
};

} // namespace simplenet::v0::testing
