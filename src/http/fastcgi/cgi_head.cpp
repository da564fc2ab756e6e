#include "http/fastcgi/cgi_head.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/length.hpp"
#include "http/codec/list.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// `3DIGIT [SP reason]`; 0: something else, or no final status of HTTP.
[[nodiscard]] unsigned read_status(std::string_view text) noexcept {
    if (text.size() < 3 || (text.size() > 3 && text[3] != ' ')) return 0;
    unsigned code = 0;
    for (const char each : text.substr(0, 3)) {
        if (!ascii::is_digit(each)) return 0;
        code = code * 10 + static_cast<unsigned>(each - '0');
    }
    return code >= 200 && code <= 599 ? code : 0;
}

} // namespace

cgi_head::state cgi_head::parse(std::string_view bytes) {
    if (size_ != 0) return state::complete;
    while (!refused_) {
        const std::size_t end = bytes.find('\n', searched_);
        if (end == std::string_view::npos || end >= limits_.bytes) {
            searched_ = bytes.size();
            refused_ = bytes.size() > limits_.bytes || end != std::string_view::npos;
            break;
        }
        const std::string_view line = bytes.substr(line_begin_, end - line_begin_);
        searched_ = line_begin_ = end + 1;
        if (!line.empty() && line != "\r") continue;
        size_ = end + 1;
        if (take_lines(bytes.substr(0, size_))) return state::complete;
        size_ = 0;
        refused_ = true;
    }
    return refused_ ? state::refused : state::incomplete;
}

bool cgi_head::take_lines(std::string_view head) {
    const auto lines = static_cast<std::size_t>(std::ranges::count(head, '\n'));
    if (lines == 1 || lines - 1 > limits_.fields) return false;
    entries_.reserve(lines - 1);
    for (std::size_t begin = 0; entries_.size() != lines - 1;) {
        const std::size_t next = head.find('\n', begin) + 1;
        std::size_t end = next - 1;
        if (end != begin && head[end - 1] == '\r') --end;
        if (!take_line(head, begin, end)) return false;
        begin = next;
    }
    if (status_ == 0) status_ = has_location_ ? 302 : 200;
    return true;
}

bool cgi_head::take_line(std::string_view head, std::size_t begin, std::size_t end) {
    const std::string_view line = head.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trim_blanks(line.substr(colon + 1));
    if (!is_token(name) || !valid_field_value(value)) return false;
    entries_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(name.size()),
                        static_cast<std::uint32_t>(value.data() - head.data()),
                        static_cast<std::uint32_t>(value.size())});
    return take_value(name, value);
}

bool cgi_head::take_value(std::string_view name, std::string_view value) {
    switch (name.size()) {
    case 6:
        if (!iequals(name, "Status")) return true;
        if (status_ != 0) return false;
        status_ = read_status(value);
        return status_ != 0;
    case 8:
        if (!iequals(name, "Location")) return true;
        if (std::exchange(has_location_, true)) return false;
        return !value.empty();
    case 12:
        if (!iequals(name, "Content-Type")) return true;
        return !std::exchange(has_type_, true);
    case 14:
        if (!iequals(name, "Content-Length")) return true;
        if (length_) return false;
        length_ = parse_length(value);
        return length_.has_value();
    default:
        return true;
    }
}

bool is_for_gateway(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 16> names{"Status",
                                                     "Content-Length",
                                                     "Connection",
                                                     "Keep-Alive",
                                                     "Proxy-Connection",
                                                     "Transfer-Encoding",
                                                     "TE",
                                                     "Trailer",
                                                     "Upgrade",
                                                     "X-Sendfile",
                                                     "X-Accel-Redirect",
                                                     "X-Accel-Buffering",
                                                     "X-Accel-Charset",
                                                     "X-Accel-Expires",
                                                     "X-Accel-Limit-Rate",
                                                     "Proxy-Authenticate"};
    return std::ranges::any_of(names,
                               [name](std::string_view each) { return iequals(each, name); });
}

} // namespace simplenet::v0::http::detail
