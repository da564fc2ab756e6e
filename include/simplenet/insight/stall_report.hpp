#pragma once
// stall_report: what blocks a loop that does not turn. Layer insight. See loop_options.

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// A turn of a loop has taken longer than loop_options::stall_threshold, and is still running.
struct stall_report {
    std::chrono::nanoseconds blocked{}; // at least this long
    std::uint64_t task = 0;             // its number, as in dump_tasks(); 0: none, or unknown
    std::string name;                   // of the task, up to 63 bytes
    std::source_location site;          // where its first coroutine awaits, or last awaited
    /// The native stack of the thread, innermost frame first, without a few frames of the library's
    /// signal handler: `function+offset (file+offset)`, as far as the dynamic linker knows names
    /// (link with -rdynamic); addr2line(1) resolves the rest. Empty if the thread could not be
    /// asked.
    std::vector<std::string> stack;
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
