// Headers of the PROXY protocol: whole and in pieces of any size one result, no piece reaches past
// the header, and lines of version 1 agree with a parser that splits at blanks.

#include "fuzz/fuzz.hpp"
#include "server/proxy_header.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace simplenet::v0::fuzz {
namespace {

using detail::proxied_addresses;
using detail::proxy_header;
using verdict = detail::proxy_header::verdict;

proxy_header parsed(std::string_view text) {
    return detail::parse_proxy_header(std::as_bytes(std::span{text}));
}

bool equal(const proxy_header& left, const proxy_header& right) {
    return left.is == right.is && (left.is != verdict::complete || left.size == right.size) &&
           left.addresses == right.addresses;
}

void check_pieces(std::string_view text, std::size_t most) {
    const proxy_header whole = parsed(text);
    std::size_t have = 0;
    for (;;) {
        const proxy_header part = parsed(text.substr(0, have));
        if (part.is != verdict::incomplete) {
            FUZZ_CHECK(equal(part, whole));
            return;
        }
        FUZZ_CHECK(part.size >= 1 && have + part.size <= detail::max_proxy_header);
        FUZZ_CHECK(whole.is != verdict::complete || have + part.size <= whole.size);
        if (have == text.size()) {
            FUZZ_CHECK(whole.is == verdict::incomplete);
            return;
        }
        have = std::min(text.size(), have + std::min(part.size, most));
    }
}

template <class Native>
bool is_address(int family, const std::string& text) {
    Native address{};
    return text.find('\0') == std::string::npos && ::inet_pton(family, text.c_str(), &address) == 1;
}

bool is_port(const std::string& text) {
    return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos &&
           (text == "0" || text[0] != '0') && std::atoi(text.c_str()) <= 65535;
}

/// Whether `text` begins with a line of version 1.
bool is_v1(std::string_view text) {
    const std::size_t end = text.substr(0, 107).find("\r\n");
    if (end == text.npos) return false;
    const std::string_view line = text.substr(0, end);
    constexpr std::string_view unknown = "PROXY UNKNOWN";
    if (line.starts_with(unknown)) return line == unknown || line[unknown.size()] == ' ';

    std::vector<std::string> fields{""};
    for (const char each : line) {
        if (each == ' ')
            fields.emplace_back();
        else
            fields.back() += each;
    }
    if (fields.size() != 6 || fields[0] != "PROXY") return false;
    const bool v4 = fields[1] == "TCP4";
    if (!v4 && fields[1] != "TCP6") return false;
    const auto is_ip = [v4](const std::string& each) {
        return v4 ? is_address<in_addr>(AF_INET, each) : is_address<in6_addr>(AF_INET6, each);
    };
    return is_ip(fields[2]) && is_ip(fields[3]) && is_port(fields[4]) && is_port(fields[5]);
}

void check_text(std::string_view text) {
    const proxy_header whole = parsed(text);
    if (text.starts_with('P')) FUZZ_CHECK((whole.is == verdict::complete) == is_v1(text));
    if (whole.is == verdict::complete) {
        FUZZ_CHECK(whole.size <= text.size());
        FUZZ_CHECK(equal(parsed(text.substr(0, whole.size)), whole));
    }
}

/// A header with a good beginning: chance finds no signature and no length.
std::string repaired(input from) {
    constexpr std::string_view signature{"\r\n\r\n\0\r\nQUIT\n", 12};
    constexpr std::array<unsigned char, 9> families{0x00, 0x11, 0x12, 0x21, 0x22,
                                                    0x31, 0x32, 0x10, 0x41};
    std::string text{signature};
    text += from.coin() ? '\x21' : '\x20';
    text += static_cast<char>(families[from.up_to(families.size() - 1)]);
    const std::size_t beyond = from.up_to(20);
    const std::string_view rest = from.rest();
    const std::size_t length = rest.size() - std::min(rest.size(), beyond);
    text += static_cast<char>(length >> 8U);
    text += static_cast<char>(length);
    return text += rest;
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const std::string v2 = repaired({data, size});
    for (const std::string_view each : {text, std::string_view{v2}}) {
        check_text(each);
        for (const std::size_t most : {std::size_t{1}, std::size_t{5}, std::size_t{100'000}})
            check_pieces(each, most);
    }
    return 0;
}
