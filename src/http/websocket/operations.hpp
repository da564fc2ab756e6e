#pragma once
// The operations of a websocket, as coroutines over its connection. Layer http, private.

#include "http/websocket/connection.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simplenet::v0::http::detail {

/// What a read does with messages.
enum class reading : std::uint8_t {
    for_message, // the first one ends it
    for_close,   // drops them, until the peer's close frame or a failure
};

[[nodiscard]] task<result<websocket::message>> read_message(websocket_ref keep, std::size_t limit,
                                                            reading what);
[[nodiscard]] task<result<>> write_message(websocket_ref keep, enum websocket::message::kind kind,
                                           const_buffer data);
[[nodiscard]] task<result<>> ping(websocket_ref keep, const_buffer payload);
[[nodiscard]] task<result<>> close(websocket_ref keep, std::uint16_t code, std::string_view reason);

/// Waits until the stream has bytes, and takes none, unless it cannot do one without the other:
/// then it puts them into the input, which must be empty. Success also if there is something else
/// to do.
///
/// @return Only an error with which a read ends.
[[nodiscard]] task<result<>> wait_for_input(websocket_connection& on);

/// Sends output until there is none. @pre the caller holds `writing`.
///
/// A stop leaves the rest of the output. Any other error is final for writes.
[[nodiscard]] task<result<>> send_output(websocket_connection& on);

/// Sends a close frame, unless one has begun to leave, and all of it.
[[nodiscard]] task<result<>> send_close(websocket_connection& on, std::uint16_t code,
                                        std::string_view reason);

/// After the last close frame: tells the peer that nothing more will come.
[[nodiscard]] task<result<>> end_writes(websocket_connection& on);

/// Sends a close frame, within the limit for that, because the peer has closed or has broken the
/// protocol. Succeeds also if the peer does not take it; fails only by a stop of the caller.
[[nodiscard]] task<result<>> answer_with_close(websocket_connection& on, std::uint16_t code);

} // namespace simplenet::v0::http::detail
