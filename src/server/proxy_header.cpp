#include "server/proxy_header.hpp"

#include "ip/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace simplenet::v0::detail {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::size_t v2_fixed_part = 16;
constexpr std::size_t v1_longest_line = 107; // including CRLF

constexpr proxy_header malformed{};

constexpr proxy_header missing(std::size_t count) noexcept {
    return {.is = proxy_header::verdict::incomplete, .size = count, .addresses = {}};
}

// --- version 1 -----------------------------------------------------------------------------------

/// One field of the line, judged by what of it is there.
struct v1_field {
    bool wrong = false;
    std::size_t missing = 0; // bytes at least, until the field could end here
};

bool only(std::string_view text, std::string_view allowed) noexcept {
    return text.find_first_not_of(allowed) == text.npos;
}

v1_field begin_of_v4(std::string_view text) noexcept {
    if (text.size() > "255.255.255.255"sv.size() || !only(text, "0123456789."))
        return {.wrong = true};
    const auto dots = static_cast<std::size_t>(std::ranges::count(text, '.'));
    if (dots > 3) return {.wrong = true};
    const bool octet_begins = text.empty() || text.back() == '.';
    return {.wrong = false, .missing = 2 * (3 - dots) + (octet_begins ? 1 : 0)};
}

v1_field begin_of_v6(std::string_view text) noexcept {
    if (!only(text, "0123456789abcdefABCDEF:.")) return {.wrong = true};
    if (text.empty()) return {.wrong = false, .missing = 2}; // ::
    if (text.ends_with("::")) return {};
    if (text.back() == ':' || text.back() == '.') return {.wrong = false, .missing = 1};
    if (text.contains("::") || text.contains('.')) return {};
    const bool last_group = std::ranges::count(text, ':') == 7;
    return {.wrong = false, .missing = last_group ? std::size_t{0} : 2};
}

v1_field begin_of_port(std::string_view text) noexcept {
    if (text.empty()) return {.wrong = false, .missing = 1};
    return {.wrong = !parse_decimal(text, 65535).has_value()};
}

/// What of `PROXY TCP4 ` or `PROXY TCP6 ` follows.
class v1_line {
public:
    v1_line(std::string_view bytes, bool is_v4) noexcept
        : left_{bytes}
        , is_v4_{is_v4} {}

    [[nodiscard]] proxy_header parse() noexcept {
        for (std::size_t which = 0; which < 4; ++which) {
            const char end = which == 3 ? '\r' : ' ';
            const std::size_t at = left_.find(end);
            const std::string_view field = left_.substr(0, at);
            const v1_field begin = judge(field, which);
            if (begin.wrong) return malformed;
            if (at == left_.npos) return missing(begin.missing + rest_after(which));
            if (!take(field, which)) return malformed;
            left_.remove_prefix(at + 1);
        }
        if (left_.empty()) return missing(1);
        if (left_.front() != '\n') return malformed;
        return {.is = proxy_header::verdict::complete,
                .size = 0, // the caller knows where we are
                .addresses =
                    proxied_addresses{{addresses_[0], ports_[0]}, {addresses_[1], ports_[1]}}};
    }
    /// Bytes behind the complete line.
    [[nodiscard]] std::size_t behind() const noexcept { return left_.size() - 1; }

private:
    // Fields: source, destination, source port, destination port.
    [[nodiscard]] v1_field judge(std::string_view field, std::size_t which) const noexcept {
        if (which >= 2) return begin_of_port(field);
        return is_v4_ ? begin_of_v4(field) : begin_of_v6(field);
    }
    /// The shortest rest of a line behind a field: its end, the fields after it, LF.
    [[nodiscard]] std::size_t rest_after(std::size_t which) const noexcept {
        const std::size_t address = is_v4_ ? "0.0.0.0"sv.size() : "::"sv.size();
        const std::array<std::size_t, 4> rest{1 + address + " 0 0\r\n"sv.size(),
                                              " 0 0\r\n"sv.size(), " 0\r\n"sv.size(),
                                              "\r\n"sv.size()};
        return rest[which];
    }
    [[nodiscard]] bool take(std::string_view field, std::size_t which) noexcept {
        if (which >= 2) {
            const auto port = parse_decimal(field, 65535);
            ports_[which - 2] = static_cast<std::uint16_t>(port.value_or(0));
            return port.has_value();
        }
        const auto address = ip_address::parse(field);
        if (!address || address->is_v4() != is_v4_) return false;
        addresses_[which] = *address;
        return true;
    }

    std::string_view left_;
    bool is_v4_;
    std::array<ip_address, 2> addresses_;
    std::array<std::uint16_t, 2> ports_{};
};

/// The part that `text` and `word` have is the same.
bool agree(std::string_view text, std::string_view word) noexcept {
    const std::size_t size = std::min(text.size(), word.size());
    return text.substr(0, size) == word.substr(0, size);
}

/// What follows UNKNOWN is ignored up to CRLF.
proxy_header parse_unknown(std::string_view text, std::string_view begin) noexcept {
    const std::string_view rest = text.substr(begin.size());
    if (!rest.empty() && rest.front() != ' ' && rest.front() != '\r') return malformed;
    if (rest.size() >= 2 && rest.front() == '\r' && rest[1] != '\n') return malformed;
    if (const std::size_t at = text.find("\r\n"); at != text.npos) {
        return {.is = proxy_header::verdict::complete, .size = at + 2, .addresses = {}};
    }
    return missing(text.ends_with('\r') ? 1 : 2);
}

proxy_header parse_v1_line(std::string_view text) noexcept {
    constexpr std::string_view unknown = "PROXY UNKNOWN";
    if (agree(text, unknown)) {
        if (text.size() >= unknown.size()) return parse_unknown(text, unknown);
        // The line of UNKNOWN is the shortest.
        return missing(unknown.size() + "\r\n"sv.size() - text.size());
    }
    for (const std::string_view begin : {"PROXY TCP4 "sv, "PROXY TCP6 "sv}) {
        if (!agree(text, begin)) continue;
        const bool is_v4 = begin.contains('4');
        if (text.size() < begin.size()) {
            // `PROXY TCP` may become either; version 6 has the shorter line.
            return missing("PROXY TCP6 :: :: 0 0\r\n"sv.size() - text.size());
        }
        v1_line line{text.substr(begin.size()), is_v4};
        proxy_header parsed = line.parse();
        if (parsed.is == proxy_header::verdict::complete) parsed.size = text.size() - line.behind();
        return parsed;
    }
    return malformed;
}

proxy_header parse_v1(std::string_view bytes) noexcept {
    const std::string_view text = bytes.substr(0, v1_longest_line);
    const proxy_header parsed = parse_v1_line(text);
    const bool too_long = parsed.is == proxy_header::verdict::incomplete &&
                          text.size() + parsed.size > v1_longest_line;
    return too_long ? malformed : parsed;
}

// --- version 2 -----------------------------------------------------------------------------------

std::uint8_t octet_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
    return std::to_integer<std::uint8_t>(bytes[at]);
}
std::uint16_t u16_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
    return static_cast<std::uint16_t>(octet_at(bytes, at) << 8U | octet_at(bytes, at + 1));
}
std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
    return std::uint32_t{u16_at(bytes, at)} << 16U | u16_at(bytes, at + 2);
}

/// For the polynomial of Castagnoli, lowest bit first (RFC 4960, appendix B).
constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t octet = 0; octet < table.size(); ++octet) {
        std::uint32_t rest = octet;
        for (int bit = 0; bit < 8; ++bit)
            rest = rest >> 1U ^ ((rest & 1U) != 0 ? 0x82f63b78U : 0U);
        table[octet] = rest;
    }
    return table;
}();

std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
    for (const std::byte each : bytes)
        crc = crc >> 8U ^ crc32c_table[(crc ^ std::to_integer<std::uint32_t>(each)) & 0xffU];
    return crc;
}

/// The checksum of `header` is computed with zeros in its own place, the four bytes from `at`.
bool checksum_is_right(std::span<const std::byte> header, std::size_t at) noexcept {
    constexpr std::array<std::byte, 4> zeros{};
    std::uint32_t crc = crc32c(~0U, header.first(at));
    crc = crc32c(crc, zeros);
    crc = crc32c(crc, header.subspan(at + zeros.size()));
    return ~crc == u32_at(header, at);
}

/// Looks for a checksum among the TLVs, which begin at `at`, and checks it.
bool tlvs_are_right(std::span<const std::byte> header, std::size_t at) noexcept {
    constexpr unsigned type_crc32c = 3;
    constexpr std::size_t tlv_head = 3;
    while (at + tlv_head <= header.size()) {
        const unsigned type = octet_at(header, at);
        const std::size_t size = u16_at(header, at + 1);
        at += tlv_head;
        if (size > header.size() - at) return true; // no TLV: a receiver may ignore these bytes
        if (type == type_crc32c) return size == 4 && checksum_is_right(header, at);
        at += size;
    }
    return true;
}

enum v2_family : unsigned { family_unknown, family_inet, family_inet6, family_unix };
enum v2_transport : unsigned { transport_unknown, transport_stream, transport_datagram };

std::size_t address_block(unsigned family) noexcept {
    constexpr std::array<std::size_t, 4> sizes{0, 4 + 4 + 2 + 2, 16 + 16 + 2 + 2, 108 + 108};
    return sizes[family];
}

template <std::size_t size>
proxied_addresses addresses_in(std::span<const std::byte> block) noexcept {
    return {
        {ip_address::from_bytes(block.first<size>()), u16_at(block, 2 * size)},
        {ip_address::from_bytes(block.subspan(size).first<size>()), u16_at(block, 2 * size + 2)}};
}

proxy_header parse_v2(std::span<const std::byte> bytes) noexcept {
    constexpr unsigned local_command = 0x20;
    constexpr unsigned proxy_command = 0x21;

    const std::size_t have = bytes.size();
    const bool is_local = have > 12 && octet_at(bytes, 12) == local_command;
    if (have > 12 && !is_local && octet_at(bytes, 12) != proxy_command) return malformed;

    const unsigned both = have > 13 ? octet_at(bytes, 13) : 0U;
    const unsigned family = both >> 4U;
    const unsigned transport = both & 0x0fU;
    const bool known = family <= family_unix && transport <= transport_datagram;
    if (!is_local && !known) return malformed;
    if (have < v2_fixed_part) return missing(v2_fixed_part - have);

    // The family of a LOCAL header, and addresses without a transport, are to be ignored.
    const bool has_addresses =
        !is_local && family != family_unknown && transport != transport_unknown;
    const std::size_t size = v2_fixed_part + u16_at(bytes, 14);
    const std::size_t tlvs = v2_fixed_part + (known ? address_block(family) : 0);
    if (has_addresses && size < tlvs) return malformed;
    if (have < size) return missing(size - have);
    if (known && !tlvs_are_right(bytes.first(size), tlvs)) return malformed;

    proxy_header header{.is = proxy_header::verdict::complete, .size = size, .addresses = {}};
    if (has_addresses && transport == transport_stream) {
        const std::span block = bytes.subspan(v2_fixed_part);
        if (family == family_inet) header.addresses = addresses_in<4>(block);
        if (family == family_inet6) header.addresses = addresses_in<16>(block);
    }
    return header;
}

} // namespace

proxy_header parse_proxy_header(std::span<const std::byte> bytes) noexcept {
    const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    if (text.empty()) return missing("PROXY UNKNOWN\r\n"sv.size()); // the shortest header
    if (text.front() == 'P') return parse_v1(text);
    return agree(text, signature) ? parse_v2(bytes) : malformed;
}

task<result<std::optional<proxied_addresses>>> read_proxy_header(tcp_stream& stream) {
    // Grown as bytes arrive: a peer that only announces a long header costs no memory.
    constexpr std::size_t largest_read = 4096;
    std::array<std::byte, 256> few;
    std::vector<std::byte> many;
    std::span<std::byte> room{few};
    std::size_t have = 0;

    for (;;) {
        const proxy_header header = parse_proxy_header(room.first(have));
        if (header.is == proxy_header::verdict::malformed) {
            co_return fail(std::errc::protocol_error);
        }
        if (header.is == proxy_header::verdict::complete) co_return header.addresses;

        const std::size_t wanted = std::min(header.size, largest_read);
        if (wanted > room.size() - have) {
            if (many.empty())
                many.assign(few.begin(), few.begin() + static_cast<std::ptrdiff_t>(have));
            many.resize(have + wanted);
            room = many;
        }
        const auto count = co_await stream.read_some(room.subspan(have, wanted));
        if (!count) co_return fail(count);
        have += *count;
    }
}

} // namespace simplenet::v0::detail
