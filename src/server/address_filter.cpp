#include "server/address_filter.hpp"

#include "ip/text.hpp"

#include <algorithm>
#include <cstddef>

namespace simplenet::v0::detail {

namespace {

constexpr unsigned mapped_bits = 96; // of ::ffff:0:0/96

} // namespace

result<address_filter::prefix> address_filter::parse_prefix(std::string_view text) noexcept {
    const std::size_t slash = text.find('/');
    const auto address = ip_address::parse(text.substr(0, slash));
    if (!address) return fail(address);

    const auto longest = static_cast<unsigned>(address->bytes().size() * 8);
    unsigned bits = longest;
    if (slash != text.npos) {
        const auto given = parse_decimal(text.substr(slash + 1), longest);
        if (!given) return fail(std::errc::invalid_argument);
        bits = *given;
    }
    if (address->is_v4_mapped() && bits >= mapped_bits)
        return prefix{address->unmapped(), bits - mapped_bits};
    return prefix{*address, bits};
}

result<address_filter> address_filter::parse(std::span<const std::string_view> texts) {
    address_filter filter;
    filter.prefixes_.reserve(texts.size());
    for (const std::string_view text : texts) {
        const auto parsed = parse_prefix(text);
        if (!parsed) return fail(parsed);
        filter.prefixes_.push_back(*parsed);
    }
    return filter;
}

bool address_filter::contains(const prefix& prefix, const ip_address& address) noexcept {
    const ip_address& wanted = prefix.address;
    if (wanted.is_v4() != address.is_v4()) return false;
    if (wanted.scope_id() != 0 && wanted.scope_id() != address.scope_id()) return false;

    const std::size_t whole = prefix.bits / 8;
    if (!std::ranges::equal(wanted.bytes().first(whole), address.bytes().first(whole)))
        return false;
    if (prefix.bits % 8 == 0) return true;
    const std::byte mask{static_cast<unsigned char>(0xff00U >> prefix.bits % 8)};
    return (wanted.bytes()[whole] & mask) == (address.bytes()[whole] & mask);
}

bool address_filter::allows(const ip_address& address) const noexcept {
    if (prefixes_.empty()) return true;
    const ip_address plain = address.unmapped();
    return std::ranges::any_of(prefixes_,
                               [&](const prefix& each) { return contains(each, plain); });
}

} // namespace simplenet::v0::detail
