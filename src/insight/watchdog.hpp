#pragma once
// watchdog: one thread that notices loops which do not turn. Layer insight, private.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

class loop;

/// Has `watched`, which runs on the calling thread, watched until unwatch(); as its options say.
void watch(loop& watched);
/// Waits while a report about it is being made.
void unwatch(loop& watched) noexcept;

} // namespace simplenet::v0::detail
