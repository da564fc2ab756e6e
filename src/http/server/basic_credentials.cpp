#include <simplenet/http/basic_credentials.hpp>

#include "http/codec/base64.hpp"
#include "http/codec/list.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace simplenet::v0::http {

std::optional<basic_credentials> basic_credentials::of(const fields& asked) {
    constexpr std::string_view scheme = "Basic ";
    const auto given = asked.find("Authorization");
    if (!given || asked.count("Authorization") != 1) return std::nullopt;
    if (!detail::iequals(given->substr(0, scheme.size()), scheme)) return std::nullopt;
    std::string_view text = given->substr(scheme.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::string pair(text.size(), '\0');
    const auto size = detail::decode_base64(text, std::as_writable_bytes(std::span{pair}));
    if (!size) return std::nullopt;
    pair.resize(*size);
    const auto is_control = [](char each) {
        return static_cast<unsigned char>(each) < 0x20 || each == 0x7f;
    };
    const std::size_t colon = pair.find(':');
    if (colon == std::string::npos || std::ranges::any_of(pair, is_control)) return std::nullopt;
    return basic_credentials{.user = pair.substr(0, colon), .password = pair.substr(colon + 1)};
}

} // namespace simplenet::v0::http
