#include "insight/metrics_page.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace simplenet::v0::detail {

namespace {

/// The length of the UTF-8 sequence at the beginning of `text`; 0 if there is none (RFC 3629,
/// section 4).
std::size_t sequence_length(std::string_view text) noexcept {
    const auto at = [text](std::size_t index) {
        return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
    };
    const auto follows = [&](std::size_t index) { return (at(index) & 0xc0U) == 0x80U; };
    const unsigned first = at(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        if (first == 0xe0 && at(1) < 0xa0) return 0; // overlong
        if (first == 0xed && at(1) > 0x9f) return 0; // surrogate
        return follows(1) && follows(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (first == 0xf0 && at(1) < 0x90) return 0; // overlong
        if (first == 0xf4 && at(1) > 0x8f) return 0; // beyond U+10FFFF
        return follows(1) && follows(2) && follows(3) ? 4 : 0;
    }
    return 0;
}

enum class quotes { plain, escaped };

void append_escaped(std::string& to, std::string_view text, quotes quotes) {
    while (!text.empty()) {
        const std::size_t length = sequence_length(text);
        const char first = text.front();
        if (length == 0)
            to += "\xef\xbf\xbd"; // U+FFFD
        else if (first == '\\')
            to += "\\\\";
        else if (first == '\n')
            to += "\\n";
        else if (first == '"' && quotes == quotes::escaped)
            to += "\\\"";
        else
            to += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

} // namespace

void metrics_page::add(const metric& of, labels labels, double value) {
    if (std::isnan(value)) return add_text(of, labels, "NaN");
    if (std::isinf(value)) return add_text(of, labels, value > 0 ? "+Inf" : "-Inf");
    std::array<char, 32> digits; // 24 are enough for the shortest form of any double
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    add_text(of, labels, {digits.data(), end});
}

void metrics_page::add_text(const metric& of, labels labels, std::string_view value) {
    std::string& to = family_of(of).samples;
    to += of.name;
    char before = '{';
    for (const metric_label& each : labels) {
        (((to += before) += each.name) += "=\"");
        append_escaped(to, each.value, quotes::escaped);
        to += '"';
        before = ',';
    }
    if (labels.size() != 0) to += '}';
    (((to += ' ') += value) += '\n');
}

metrics_page::family& metrics_page::family_of(const metric& described) {
    const auto found = std::ranges::find(families_, described.name,
                                         [](const family& each) { return each.described.name; });
    if (found != families_.end()) return *found;
    SIMPLENET_EXPECTS(described.name.ends_with("_total") ==
                          (described.kind == metric_kind::counter),
                      "the names of counters end in _total, and no others");
    return families_.emplace_back(family{.described = described, .samples = {}});
}

std::string metrics_page::text() const {
    std::string text;
    for (const family& each : families_) {
        ((text += "# HELP ") += each.described.name) += ' ';
        append_escaped(text, each.described.help, quotes::plain);
        ((text += "\n# TYPE ") += each.described.name);
        text += each.described.kind == metric_kind::counter ? " counter\n" : " gauge\n";
        text += each.samples;
    }
    return text;
}

} // namespace simplenet::v0::detail
