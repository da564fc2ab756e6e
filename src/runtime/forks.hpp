#pragma once
// forks: whether what this process has was made by it, or by a parent that forked since.
// Layer runtime, private.

namespace simplenet::inline v0::detail {

/// Grows in the child at every fork(2) from the first call on. Any thread.
[[nodiscard]] unsigned fork_generation() noexcept;

} // namespace simplenet::inline v0::detail
