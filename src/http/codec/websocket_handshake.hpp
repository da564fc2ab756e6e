#pragma once
// The handshake of WebSocket: what its fields must say (RFC 6455, 4). Layer http/codec.

#include <simplenet/core/buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

/// A Sec-WebSocket-Key: the base64 of 16 random bytes.
using websocket_key = std::array<char, 24>;
/// A Sec-WebSocket-Accept: the base64 of 20 bytes.
using websocket_accept = std::array<char, 28>;

[[nodiscard]] websocket_key make_websocket_key(std::span<const std::byte, 16> random) noexcept;
/// Whether `key` is the base64 of 16 bytes.
[[nodiscard]] bool is_websocket_key(std::string_view key) noexcept;
/// The answer to `key`, which has 24 characters (RFC 6455, 4.2.2).
[[nodiscard]] websocket_accept accept_websocket_key(std::string_view key) noexcept;

/// Collects the fields of a request or an answer that matter to the handshake. Views what it is
/// given. Field values have no white space around them.
class handshake_fields {
public:
    /// Notes a field, in the order of the message; ignores others.
    void add(std::string_view name, std::string_view value) noexcept;

    enum class verdict : std::uint8_t {
        accepted,
        not_asked,     // it asks for no WebSocket: an ordinary request
        bad,           // 400
        wrong_version, // 426, with Sec-WebSocket-Version: 13 (RFC 6455, 4.4)
    };
    /// Judges a request of `method` in HTTP/1.1 or later if `version` is 11 (RFC 6455, 4.2.1).
    [[nodiscard]] verdict of_request(std::string_view method, unsigned version) const noexcept;
    /// Whether an answer accepts what a client asked for with `key` and `offered` (RFC 6455, 4.1).
    [[nodiscard]] bool accepts(unsigned status, std::string_view key,
                               std::span<const std::string_view> offered) const noexcept;

    /// Whether an answer tells that its server has understood a WebSocket handshake with `key`,
    /// whatever it has chosen of what was offered.
    [[nodiscard]] bool confirms(unsigned status, std::string_view key) const noexcept;

    /// Of an accepted request.
    [[nodiscard]] std::string_view key() const noexcept { return key_.value; }
    /// The subprotocol that an answer has chosen; empty if none.
    [[nodiscard]] std::string_view protocol() const noexcept { return protocol_.value; }

private:
    /// A field that may occur once.
    struct single {
        std::string_view value;
        unsigned count = 0;

        void add(std::string_view added) noexcept {
            value = added;
            ++count;
        }
    };

    bool upgrade_ = false;    // Upgrade names websocket
    bool connection_ = false; // Connection names upgrade
    bool extensions_ = false;
    bool other_upgrade_ = false; // Upgrade says something else, too
    single key_;
    single version_;
    single accept_;
    single protocol_;
};

/// The first subprotocol that `value`, of a Sec-WebSocket-Protocol, names and that is in
/// `supported`; empty if there is none. If the field occurs several times, call it for each, in
/// order, until it finds one.
[[nodiscard]] std::string_view
choose_protocol(std::string_view value, std::span<const std::string_view> supported) noexcept;

/// Whether a page of `origin` may connect to `host`, the Host of its request: it comes from there,
/// or is in `allowed` (RFC 6455, 10.2).
///
/// The scheme of an origin is not compared with that of the request, which a proxy in front may
/// have changed.
[[nodiscard]] bool is_allowed_origin(std::string_view origin, std::string_view host,
                                     std::span<const std::string_view> allowed) noexcept;

} // namespace simplenet::v0::http::detail
