// Text of addresses, endpoints and local endpoints: compared with the C library, and written and
// read back.

#include "fuzz/fuzz.hpp"
#include "ip/native.hpp"

#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/ip/local_endpoint.hpp>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

namespace simplenet::v0::fuzz {
namespace {

template <class Address>
ip_address from(const Address& bits) {
    std::array<std::byte, sizeof bits> bytes;
    std::memcpy(bytes.data(), &bits, sizeof bits);
    return ip_address::from_bytes(std::span{std::as_const(bytes)});
}

/// The answer of inet_pton(3) for text without a zone.
std::optional<ip_address> reference(const std::string& text) {
    if (text.find('\0') != std::string::npos) return std::nullopt;
    in_addr v4{};
    if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return from(v4);
    in6_addr v6{};
    if (::inet_pton(AF_INET6, text.c_str(), &v6) == 1) return from(v6);
    return std::nullopt;
}

void check_round_trip(const ip_address& address) {
    const std::string text = address.to_string();
    const auto again = ip_address::parse(text);
    FUZZ_CHECK(again && *again == address);
    FUZZ_CHECK(std::hash<ip_address>{}(*again) == std::hash<ip_address>{}(address));
    FUZZ_CHECK(again->to_string() == text);

    // inet_ntop(3) writes ::1.2.3.4, which RFC 4291 deprecates and RFC 5952 does not require.
    const auto bytes = address.bytes();
    const bool compatible =
        address.is_v6() &&
        std::ranges::all_of(bytes.first(12), [](std::byte each) { return each == std::byte{}; });
    if (compatible || address.scope_id() != 0) return;
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    FUZZ_CHECK(::inet_ntop(address.is_v4() ? AF_INET : AF_INET6, bytes.data(), buffer.data(),
                           buffer.size()) != nullptr);
    FUZZ_CHECK(text == buffer.data());
}

/// getaddrinfo(3) accepts more zones than parse(), for example names of interfaces; but what
/// parse() accepts has the same meaning there.
void check_scoped(const std::string& text, const ip_address& address) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_family = AF_INET6;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(text.c_str(), nullptr, &hints, &found) != 0) {
        // getaddrinfo(3) accepts a zone only for link-local addresses.
        FUZZ_CHECK(!address.is_link_local());
        return;
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
    const auto same = detail::endpoint_from_native(found->ai_addr, found->ai_addrlen);
    FUZZ_CHECK(same && same->address() == address);
}

void check_address(const std::string& text) {
    const auto parsed = ip_address::parse(text);
    if (const std::size_t percent = text.find('%'); percent == std::string::npos) {
        const auto expected = reference(text);
        FUZZ_CHECK(parsed.has_value() == expected.has_value());
        FUZZ_CHECK(!parsed || *parsed == *expected);
    } else if (parsed) {
        const auto without_zone = reference(text.substr(0, percent));
        FUZZ_CHECK(without_zone && without_zone->is_v6() && parsed->is_v6());
        FUZZ_CHECK(std::ranges::equal(without_zone->bytes(), parsed->bytes()));
        FUZZ_CHECK(std::to_string(parsed->scope_id()) == text.substr(percent + 1));
        check_scoped(text, *parsed);
    }
    if (parsed) check_round_trip(*parsed);
    if (!parsed) FUZZ_CHECK(parsed.error() == std::errc::invalid_argument);
}

/// A second parser of endpoints, which starts at the end.
std::optional<endpoint> endpoint_reference(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    const std::string digits = text.substr(colon + 1);
    if (digits.empty() || digits.size() > 5 || (digits.size() > 1 && digits[0] == '0') ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
        return std::nullopt;
    }
    const int port = std::atoi(digits.c_str());
    if (port > 65535) return std::nullopt;

    std::string host = text.substr(0, colon);
    const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    const auto address = ip_address::parse(host);
    if (!address || address->is_v6() != bracketed) return std::nullopt;
    return endpoint{*address, static_cast<std::uint16_t>(port)};
}

void check_endpoint(const std::string& text) {
    const auto parsed = endpoint::parse(text);
    const auto expected = endpoint_reference(text);
    FUZZ_CHECK(parsed.has_value() == expected.has_value());
    if (!parsed) return;

    FUZZ_CHECK(*parsed == *expected);
    const auto again = endpoint::parse(parsed->to_string());
    FUZZ_CHECK(again && *again == *parsed);
    const auto native = detail::to_native(*parsed);
    const auto back = detail::endpoint_from_native(
        reinterpret_cast<const sockaddr*>(&native.storage), native.size);
    FUZZ_CHECK(back && *back == *parsed);
}

void check_local(const std::string& text) {
    const bool fits = text.size() <= local_endpoint::max_name_size;
    const bool is_path = !text.empty() && text.find('\0') == std::string::npos;
    const auto path = local_endpoint::parse(text);
    FUZZ_CHECK(path.has_value() == (is_path && fits));
    if (path) FUZZ_CHECK(path->path() == text && path->to_string() == text);

    const auto name = local_endpoint::abstract(text);
    FUZZ_CHECK(name.has_value() == (!text.empty() && fits));
    if (name) FUZZ_CHECK(name->abstract_name() == text && name->path().empty());

    for (const auto& each : {path, name}) {
        if (!each) continue;
        const auto native = detail::to_native(*each);
        const auto back = detail::local_endpoint_from_native(
            reinterpret_cast<const sockaddr*>(&native.storage), native.size);
        FUZZ_CHECK(back && *back == *each);
        FUZZ_CHECK(std::hash<local_endpoint>{}(*back) == std::hash<local_endpoint>{}(*each));
    }
}

/// Every address is written so that it can be parsed.
void check_bytes(input from) {
    std::array<std::byte, 16> bytes{};
    const std::string_view given = from.text(bytes.size());
    std::memcpy(bytes.data(), given.data(), given.size());
    const auto scope = static_cast<std::uint32_t>(from.up_to(65535) * (from.coin() ? 65537 : 1));
    const std::span<const std::byte, 16> all{bytes};
    check_round_trip(ip_address::from_bytes(all.first<4>()));
    check_round_trip(ip_address::from_bytes(all, scope));
    check_round_trip(ip_address::from_bytes(all, scope).unmapped());
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string text{reinterpret_cast<const char*>(data), size};
    check_address(text);
    check_endpoint(text);
    check_local(text);
    check_bytes({data, size});
    return 0;
}
