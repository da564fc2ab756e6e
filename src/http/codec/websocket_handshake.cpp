#include "http/codec/websocket_handshake.hpp"

#include "http/codec/base64.hpp"
#include "http/codec/list.hpp"
#include "http/codec/sha1.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>

namespace simplenet::v0::http::detail {

namespace {

/// Calls `each` with the elements of a list until it returns true. Returns whether it did.
template <class Each>
bool any_of_list(std::string_view list, Each each) {
    bool found = false;
    for_each_element(list, [&](std::string_view element) {
        found = !element.empty() && each(element);
        return !found;
    });
    return found;
}

std::string_view characters_of(std::span<const char> characters) noexcept {
    return {characters.data(), characters.size()};
}

} // namespace

websocket_key make_websocket_key(std::span<const std::byte, 16> random) noexcept {
    websocket_key key; // NOLINT(*-member-init): filled at once
    encode_base64(random, key);
    return key;
}

bool is_websocket_key(std::string_view key) noexcept {
    std::array<std::byte, 18> bytes; // what 24 characters can stand for
    return key.size() == websocket_key{}.size() && decode_base64(key, bytes) == 16;
}

websocket_accept accept_websocket_key(std::string_view key) noexcept {
    constexpr std::string_view known_to_servers = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    std::array<char, 24 + known_to_servers.size()> both; // NOLINT(*-member-init): filled at once
    SIMPLENET_EXPECTS(key.size() == 24, "a key of a WebSocket has 24 characters");
    std::ranges::copy(known_to_servers, std::ranges::copy(key, both.begin()).out);
    websocket_accept accept; // NOLINT(*-member-init): filled at once
    encode_base64(sha1(both), accept);
    return accept;
}

void handshake_fields::add(std::string_view name, std::string_view value) noexcept {
    if (iequals(name, "upgrade")) {
        // A version, as in `websocket/13`, makes it another protocol (RFC 9110, 7.8).
        any_of_list(value, [this](std::string_view element) {
            (iequals(element, "websocket") ? upgrade_ : other_upgrade_) = true;
            return false;
        });
    } else if (iequals(name, "connection")) {
        connection_ |= any_of_list(
            value, [](std::string_view element) { return iequals(element, "upgrade"); });
    } else if (iequals(name, "sec-websocket-key")) {
        key_.add(value);
    } else if (iequals(name, "sec-websocket-version")) {
        version_.add(value);
    } else if (iequals(name, "sec-websocket-accept")) {
        accept_.add(value);
    } else if (iequals(name, "sec-websocket-protocol")) {
        protocol_.add(value);
    } else if (iequals(name, "sec-websocket-extensions")) {
        extensions_ |= !value.empty();
    }
}

handshake_fields::verdict handshake_fields::of_request(std::string_view method,
                                                       unsigned version) const noexcept {
    // An Upgrade in HTTP/1.0, or one that Connection does not name, is to be ignored (RFC 9110,
    // 7.8, 7.6.1).
    if (!upgrade_ || !connection_ || version < 11) return verdict::not_asked;
    if (method != "GET") return verdict::bad;
    if (version_.count != 1 || version_.value != "13") {
        return version_.count == 0 ? verdict::bad : verdict::wrong_version;
    }
    if (key_.count != 1 || !is_websocket_key(key_.value)) return verdict::bad;
    return verdict::accepted;
}

bool handshake_fields::confirms(unsigned status, std::string_view key) const noexcept {
    return status == 101 && upgrade_ && !other_upgrade_ && connection_ && accept_.count == 1 &&
           accept_.value == characters_of(accept_websocket_key(key));
}

bool handshake_fields::accepts(unsigned status, std::string_view key,
                               std::span<const std::string_view> offered) const noexcept {
    if (!confirms(status, key)) return false;
    // The client offers no extensions, so a server cannot choose one.
    if (extensions_) return false;
    if (protocol_.count == 0) return true;
    return protocol_.count == 1 && std::ranges::find(offered, protocol_.value) != offered.end();
}

std::string_view choose_protocol(std::string_view value,
                                 std::span<const std::string_view> supported) noexcept {
    std::string_view chosen;
    any_of_list(value, [&](std::string_view element) {
        const auto found = std::ranges::find(supported, element);
        if (found != supported.end()) chosen = element;
        return found != supported.end();
    });
    return chosen;
}

bool is_allowed_origin(std::string_view origin, std::string_view host,
                       std::span<const std::string_view> allowed) noexcept {
    const auto is_it = [origin](std::string_view each) { return iequals(each, origin); };
    if (std::ranges::any_of(allowed, is_it)) return true;
    for (const std::string_view scheme : {"https://", "http://"}) {
        if (!iequals(origin.substr(0, scheme.size()), scheme)) continue;
        return iequals(origin.substr(scheme.size()), host);
    }
    return false;
}

} // namespace simplenet::v0::http::detail
