#pragma once
// websocket_access: how servers and clients make a websocket once its handshake is over. Layer
// http, private.

#include <simplenet/http/websocket.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <cstdint>
#include <string>

namespace simplenet::v0::http::detail {

/// Frames of clients are masked, those of servers are not (RFC 6455, 5.1).
enum class websocket_role : std::uint8_t { client, server };

class websocket_access {
public:
    /// Takes a stream on which the handshake is over.
    ///
    /// @param options   Only its numbers are used, and copied.
    /// @param ahead     Bytes that were read from `over` behind the head of the handshake: a server
    ///                  may send its first frames in the segment of its answer. May be empty.
    /// @param protocol  The subprotocol that was chosen; empty if none.
    [[nodiscard]] static websocket make(any_stream over, websocket_role role,
                                        const websocket_options& options, received ahead = {},
                                        std::string protocol = {});

    /// Lets reads close `peer` when the server around `within` shuts down.
    static void watch_server(websocket& peer, const simplenet::detail::scope& within) noexcept;
};

} // namespace simplenet::v0::http::detail
