#pragma once
// forks: detects whether this process created an object, or a parent that forked since. Layer
// threads, private.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// A number that no ancestor of this process has had: a child created after the first call, by any
/// means, has a different one. Any thread.
[[nodiscard]] unsigned fork_generation() noexcept;

} // namespace simplenet::v0::detail
