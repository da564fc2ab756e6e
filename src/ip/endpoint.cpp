#include <simplenet/ip/endpoint.hpp>

#include "ip/text.hpp"

#include <array>
#include <optional>

namespace simplenet::v0 {

namespace {

struct halves {
    std::string_view address;
    std::string_view port;
};

/// The texts before and after the colon that separates address and port, without brackets.
std::optional<halves> split(std::string_view text) noexcept {
    if (!text.starts_with('[')) {
        // The first colon: `::1:80` has no IPv4 address before it, so it is rejected.
        const std::size_t colon = text.find(':');
        if (colon == text.npos) return std::nullopt;
        return halves{text.substr(0, colon), text.substr(colon + 1)};
    }
    const std::size_t bracket = text.find("]:");
    if (bracket == text.npos) return std::nullopt;
    return halves{text.substr(1, bracket - 1), text.substr(bracket + 2)};
}

} // namespace

result<endpoint> endpoint::parse(std::string_view text) noexcept {
    const auto parts = split(text);
    if (!parts) return fail(std::errc::invalid_argument);

    const auto address = ip_address::parse(parts->address);
    if (!address) return fail(address);

    const auto port = detail::parse_decimal(parts->port, 65535);
    const bool bracketed = text.starts_with('[');
    if (!port || address->is_v6() != bracketed) return fail(std::errc::invalid_argument);
    return endpoint{*address, static_cast<std::uint16_t>(*port)};
}

std::string endpoint::to_string() const {
    std::array<char, detail::max_address_text + std::string_view{"[]:65535"}.size()> text;
    char* end = text.data();
    if (address_.is_v6()) *end++ = '[';
    end = detail::write_address(end, address_);
    if (address_.is_v6()) *end++ = ']';
    *end++ = ':';
    return {text.data(), detail::write_decimal(end, port_)};
}

} // namespace simplenet::v0

std::size_t
std::hash<simplenet::endpoint>::operator()(const simplenet::endpoint& endpoint) const noexcept {
    return simplenet::detail::combine_hashes(std::hash<simplenet::ip_address>{}(endpoint.address()),
                                             endpoint.port());
}
