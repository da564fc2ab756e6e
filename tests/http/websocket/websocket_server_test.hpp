#pragma once
// websocket_server_test: a server with routes for WebSockets, and clients that write frames by
// hand.

#include "http/server/http_test.hpp"
#include "http/websocket/websocket_ends.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace simplenet::v0::testing {

class websocket_server_test : public http_test {
protected:
    static std::string handshake(std::string_view target = "/", std::string_view more = {}) {
        return "GET " + std::string{target} +
               " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
               std::string{more} + "\r\n";
    }
    /// A client whose handshake is over.
    raw_peer open(std::string_view target = "/") {
        raw_peer client = connect();
        client.send(handshake(target));
        EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 101 "));
        return client;
    }
    /// The next frame of the server; no_frame at the end.
    static seen_frame next(raw_peer& client) {
        std::string head = client.receive(2);
        if (head.size() < 2) return no_frame;
        std::uint64_t size = static_cast<unsigned char>(head[1]);
        if (size >= 126) {
            const std::string more = client.receive(size == 126 ? 2 : 8);
            size = 0;
            for (const char each : more)
                size = size << 8U | static_cast<unsigned char>(each);
        }
        return {static_cast<unsigned char>(head[0]), client.receive(size)};
    }
};

} // namespace simplenet::v0::testing
