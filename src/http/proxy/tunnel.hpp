#pragma once
// run_tunnel(): bytes both ways between a client and a backend, behind a handshake. Layer http,
// private.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <chrono>

namespace simplenet::v0::http::detail {

/// Passes bytes on in both directions, and the end of each one, until both have ended, one has
/// failed, nothing has moved for `idle`, or the server shuts down. Closes both streams.
///
/// Holds no memory while nothing moves, if the streams can wait without (ready_reader).
///
/// @param ahead  Bytes of the backend that have arrived already.
/// @param idle   0: no limit.
/// @return Why it ended; success unless an error of a stream was the reason.
[[nodiscard]] task<result<>> run_tunnel(any_stream client, any_stream backend, received ahead,
                                        std::chrono::nanoseconds idle);

} // namespace simplenet::v0::http::detail
