#pragma once
// forks: whether what this process has was made by it, or by a parent that forked since.
// Layer threads, private.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// A number that no ancestor of this process has had: it differs in a child made after the first
/// call, however it was made. Any thread.
[[nodiscard]] unsigned fork_generation() noexcept;

} // namespace simplenet::v0::detail
