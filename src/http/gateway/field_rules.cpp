#include "http/gateway/field_rules.hpp"

#include "http/codec/list.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::string_view forwarded_prefix = "X-Forwarded-";

/// One name of a size, as most fields have another size already.
[[nodiscard]] field_kind either(std::string_view name, std::string_view known,
                                field_kind kind) noexcept {
    return iequals(name, known) ? kind : field_kind::ordinary;
}

[[nodiscard]] field_kind kind_of_forwarded(std::string_view name) noexcept {
    const std::string_view rest = name.substr(forwarded_prefix.size());
    if (iequals(rest, "For")) return field_kind::forwarded_for;
    if (iequals(rest, "Proto")) return field_kind::proto;
    if (iequals(rest, "Host")) return field_kind::forwarded_host;
    return field_kind::forwarded_more;
}

} // namespace

field_kind kind_of_field(std::string_view name) noexcept {
    using enum field_kind;
    if (name.size() >= forwarded_prefix.size() &&
        iequals(name.substr(0, forwarded_prefix.size()), forwarded_prefix)) {
        return kind_of_forwarded(name);
    }
    switch (name.size()) {
    case 2:
        return either(name, "TE", hop_by_hop);
    case 3:
        return either(name, "Via", via);
    case 4:
        return either(name, "Host", host);
    case 5:
        return either(name, "Proxy", proxy);
    case 6:
        return either(name, "Expect", expect);
    case 7:
        if (iequals(name, "Trailer")) return hop_by_hop;
        return either(name, "Upgrade", hop_by_hop);
    case 9:
        if (iequals(name, "X-Real-IP")) return real_ip;
        return either(name, "Forwarded", forwarded);
    case 10:
        if (iequals(name, "Keep-Alive")) return hop_by_hop;
        return either(name, "Connection", connection);
    case 12:
        return either(name, "Max-Forwards", max_forwards);
    case 13:
        return either(name, "Authorization", kept);
    case 14:
        if (iequals(name, "HTTP2-Settings")) return hop_by_hop; // RFC 7540, section 3.2.1
        return either(name, "Content-Length", content);
    case 16:
        return either(name, "Proxy-Connection", hop_by_hop);
    case 17:
        return either(name, "Transfer-Encoding", hop_by_hop);
    case 18:
        return either(name, "Proxy-Authenticate", hop_by_hop);
    case 19:
        return either(name, "Proxy-Authorization", hop_by_hop);
    default:
        return ordinary;
    }
}

field_kind kind_of_folded_field(std::string_view name) noexcept {
    constexpr std::size_t longest_known = 19;
    std::array<char, longest_known> folded;
    // A longer name can only be one of X-Forwarded-, which its beginning tells.
    const std::string_view begin = name.substr(0, folded.size());
    std::ranges::replace_copy(begin, folded.begin(), '_', '-');
    const std::string_view text{folded.data(), begin.size()};
    const field_kind kind = kind_of_field(text);
    if (name.size() <= folded.size() || tells_client(kind)) return kind;
    return field_kind::ordinary;
}

bool has_clear_elements(std::string_view forwarded) noexcept {
    for (std::size_t at = 0; at < forwarded.size(); ++at) {
        if (forwarded[at] == '\\') return false;
        if (forwarded[at] != '"') continue;
        if (at == 0 || forwarded[at - 1] != '=') return false;
        for (++at; at < forwarded.size() && forwarded[at] != '"'; ++at)
            if (forwarded[at] == '\\') ++at;
        if (at >= forwarded.size()) return false;
        const std::string_view behind = trim_blanks(forwarded.substr(at + 1));
        if (!behind.empty() && behind.front() != ',' && behind.front() != ';') return false;
    }
    return true;
}

bool equals_folded(std::string_view left, std::string_view right) noexcept {
    const auto folded = [](char byte) { return byte == '_' ? '-' : to_lower(byte); };
    return std::ranges::equal(left, right, {}, folded, folded);
}

} // namespace simplenet::v0::http::detail
