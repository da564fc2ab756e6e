#pragma once
// watchdog: one thread that detects loops that do not turn. Layer insight, private.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

class loop;

/// Watches `watched`, which runs on the calling thread, until unwatch(), according to its options.
void watch(loop& watched);
/// Waits while a report about the loop is being made.
void unwatch(loop& watched) noexcept;

} // namespace simplenet::v0::detail
