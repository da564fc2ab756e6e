#pragma once
// Endpoints as text, for tests of names.

#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {

/// The endpoints found, as text; empty after an error.
inline std::vector<std::string> texts(const result<std::vector<endpoint>>& found) {
    std::vector<std::string> texts;
    for (const endpoint& each : found.value_or(std::vector<endpoint>{}))
        texts.push_back(each.to_string());
    return texts;
}

inline blocking::tcp_listener listen_at(std::string_view address, std::uint16_t port = 0) {
    return or_throw(
        blocking::tcp_listener::bind(endpoint{or_throw(ip_address::parse(address)), port}));
}
inline std::uint16_t port_of(const blocking::tcp_listener& listener) {
    return or_throw(listener.local_endpoint()).port();
}

} // namespace simplenet::v0::testing
