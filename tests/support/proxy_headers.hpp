#pragma once
// Headers of the PROXY protocol, built byte by byte.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text});
}

inline std::string big_endian_16(std::size_t number) {
    return {static_cast<char>(number >> 8U), static_cast<char>(number)};
}

/// A header of version 2 whose length is that of `rest`.
inline std::string proxy_v2(std::uint8_t command, std::uint8_t family, std::string_view rest) {
    using namespace std::string_view_literals;
    std::string header{"\r\n\r\n\0\r\nQUIT\n"sv};
    header += static_cast<char>(command);
    header += static_cast<char>(family);
    header += big_endian_16(rest.size());
    return header += rest;
}

inline std::string proxy_tlv(std::uint8_t type, std::string_view value) {
    return static_cast<char>(type) + big_endian_16(value.size()) + std::string{value};
}

/// 192.0.2.1:1000 to 198.51.100.2:443.
inline const std::string proxy_v4_block{"\xc0\x00\x02\x01\xc6\x33\x64\x02\x03\xe8\x01\xbb", 12};
/// [2001:db8::1]:1000 to [2001:db8::2]:443.
inline const std::string proxy_v6_block = std::string{"\x20\x01\x0d\xb8"} + std::string(11, '\0') +
                                          '\x01' + std::string{"\x20\x01\x0d\xb8"} +
                                          std::string(11, '\0') + '\x02' + "\x03\xe8\x01\xbb";

} // namespace simplenet::v0::testing
