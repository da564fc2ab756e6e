#pragma once
// group_dump: the tasks of several loops as one text, from any thread. Layer runtime, private.

#include <simplenet/runtime/event_loop.hpp>

#include <span>
#include <string>

namespace simplenet::v0::detail {

/// The text of dump_tasks() of each loop, below a line with its index. See
/// event_loop_group::dump_tasks() for loops that do not answer.
[[nodiscard]] std::string dump_tasks_of(std::span<event_loop> loops);

} // namespace simplenet::v0::detail
