#pragma once
// stall_report: what a loop did while it did not turn. Layer insight. See loop_options.

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A turn of a loop took longer than loop_options::stall_threshold, and still does.
struct stall_report {
    std::chrono::nanoseconds blocked{}; // at least so long
    std::uint64_t task = 0;             // its number, as in dump_tasks(); 0: none, or unknown
    std::string name;                   // of the task, up to 63 bytes
    std::source_location site;          // where its first coroutine awaits, or last did
    /// What the thread does, innermost first, a few frames of the library's signal handler left
    /// out: `function+offset (file+offset)`, as far as the dynamic linker knows names (link with
    /// -rdynamic); addr2line(1) resolves the rest. Empty if the thread could not be asked.
    std::vector<std::string> stack;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
