#include <simplenet/ip/address_set.hpp>

#include "ip/text.hpp"

#include <algorithm>
#include <cstddef>

namespace simplenet::v0 {

namespace {

constexpr unsigned mapped_bits = 96; // of ::ffff:0:0/96

} // namespace

result<address_set::prefix> address_set::parse_prefix(std::string_view text) noexcept {
    const std::size_t slash = text.find('/');
    const auto address = ip_address::parse(text.substr(0, slash));
    if (!address) return fail(address);

    const auto longest = static_cast<unsigned>(address->bytes().size() * 8);
    unsigned bits = longest;
    if (slash != text.npos) {
        const auto given = detail::parse_decimal(text.substr(slash + 1), longest);
        if (!given) return fail(std::errc::invalid_argument);
        bits = *given;
    }
    if (address->is_v4_mapped() && bits >= mapped_bits)
        return prefix{address->unmapped(), bits - mapped_bits};
    return prefix{*address, bits};
}

result<address_set> address_set::parse(std::span<const std::string_view> texts) {
    address_set set;
    set.prefixes_.reserve(texts.size());
    for (const std::string_view text : texts) {
        const auto parsed = parse_prefix(text);
        if (!parsed) return fail(parsed);
        set.prefixes_.push_back(*parsed);
    }
    return set;
}

bool address_set::covers(const prefix& prefix, const ip_address& address) noexcept {
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

bool address_set::contains(const ip_address& address) const noexcept {
    const ip_address plain = address.unmapped();
    return std::ranges::any_of(prefixes_, [&](const prefix& each) { return covers(each, plain); });
}

} // namespace simplenet::v0
