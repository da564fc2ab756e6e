#pragma once
// Random addresses and damaged text for property tests: the same in every run.

#include <simplenet/ip/ip_address.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

class random_addresses {
public:
    /// Any IPv4 address.
    simplenet::ip_address v4() { return simplenet::ip_address::from_bytes(octets<4>()); }

    /// An IPv6 address with enough zero groups and small groups to exercise the forms of text.
    simplenet::ip_address v6(std::uint32_t scope_id = 0) {
        auto bytes = octets<16>();
        for (std::size_t at = 0; at < bytes.size(); at += 2) {
            if (chance(2)) bytes[at] = bytes[at + 1] = std::byte{0};
            if (chance(4)) bytes[at] = std::byte{0};
        }
        if (chance(8)) {
            std::fill_n(bytes.begin(), 10, std::byte{0});
            bytes[10] = bytes[11] = std::byte{0xff};
        }
        return simplenet::ip_address::from_bytes(bytes, scope_id);
    }

    std::uint32_t number() { return static_cast<std::uint32_t>(generator_()); }

    /// `text` with up to three characters replaced, inserted or removed.
    std::string damaged(std::string text) {
        for (auto edits = number() % 4; edits != 0; --edits) {
            const std::size_t at = number() % (text.size() + 1);
            if (chance(3)) {
                text.insert(at, 1, any_character());
            } else if (at < text.size() && chance(2)) {
                text[at] = any_character();
            } else if (at < text.size()) {
                text.erase(at, 1);
            }
        }
        return text;
    }

private:
    bool chance(std::uint32_t one_in) { return number() % one_in == 0; }

    char any_character() {
        constexpr std::string_view alphabet = "::::....0001259abcfABCFgx[] +-";
        return alphabet[number() % alphabet.size()];
    }

    template <std::size_t N>
    std::array<std::byte, N> octets() {
        std::array<std::byte, N> made;
        for (std::byte& octet : made)
            octet = static_cast<std::byte>(number() & 0xffU);
        return made;
    }

    std::mt19937 generator_{20250301};
};
