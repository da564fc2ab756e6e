#pragma once
// Random bytes for clients: masks, and the key of a handshake. Layer http, private.

#include "http/codec/websocket_frame.hpp"

#include <cstddef>
#include <span>

namespace simplenet::v0::http::detail {

/// Fills `to` with bytes of getrandom(2). Ends the program if there are none.
///
/// @pre `to` has at most 256 bytes, for which the call is never interrupted or cut short.
void fill_with_random(std::span<std::byte> to) noexcept;

/// The mask of another frame, which nobody can predict: a page could otherwise choose the bytes
/// that its browser sends, and so speak to what is in between (RFC 6455, 10.3).
///
/// One system call for 64 masks of a thread.
[[nodiscard]] websocket_mask next_mask() noexcept;

} // namespace simplenet::v0::http::detail
