#pragma once
// The masks of a client. Layer http, private.

#include "http/codec/websocket_frame.hpp"

namespace simplenet::v0::http::detail {

/// The mask of another frame, which nobody can predict: a page could otherwise choose the bytes
/// that its browser sends, and so speak to what is in between (RFC 6455, 10.3).
///
/// One system call for 64 masks of a thread.
[[nodiscard]] websocket_mask next_mask() noexcept;

} // namespace simplenet::v0::http::detail
