#pragma once
// read_beside: waits for an answer while its request leaves. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <cstddef>

namespace simplenet::v0::http::detail {

/// Reads from `from` until something has come, or `sending` has ended; then it stops the other one.
///
/// Returns 0 once `sending` has ended, also if it has failed: the peer may have answered before it
/// stopped reading, so the caller reads again.
///
/// @par Errors
/// Those of the read.
/// @par Cancellation
/// Nothing is lost.
[[nodiscard]] task<result<std::size_t>> read_beside(task<result<>> sending, any_stream& from,
                                                    mutable_buffer into);

} // namespace simplenet::v0::http::detail
