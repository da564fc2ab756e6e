#pragma once
// What the parsers of heads make of a text, as values that tests compare; whole or in pieces.

#include "http/codec/head.hpp"

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

using http::detail::field_entry;
using http::detail::head_limits;
using http::detail::head_parser;
using http::detail::head_state;
using http::detail::request_parser;
using http::detail::response_parser;
using http::detail::trailer_parser;

using field_list = std::vector<std::pair<std::string, std::string>>;

inline field_list listed(std::span<const field_entry> fields, const char* text) {
    field_list list;
    for (const field_entry& each : fields)
        list.emplace_back(each.name(text), each.value(text));
    return list;
}

/// Everything that a parser tells. The parts of the start line are in `line`.
struct parsed_head {
    head_state state = head_state::incomplete;
    unsigned status = 0;
    std::size_t size = 0;
    std::vector<std::string> line;
    field_list fields;

    friend bool operator==(const parsed_head&, const parsed_head&) = default;
    friend std::ostream& operator<<(std::ostream& out, const parsed_head& head) {
        out << "state " << static_cast<int>(head.state) << " status " << head.status << " size "
            << head.size;
        for (const auto& part : head.line)
            out << " {" << part << '}';
        for (const auto& [name, value] : head.fields)
            out << " [" << name << "]=[" << value << ']';
        return out;
    }
};

inline std::vector<std::string> start_line_of(const request_parser& parser, const char* text) {
    return {std::string{parser.method(text)}, std::string{parser.target(text)},
            std::to_string(parser.version())};
}
inline std::vector<std::string> start_line_of(const response_parser& parser, const char* text) {
    return {std::to_string(parser.version()), std::to_string(parser.code()),
            std::string{parser.reason(text)}};
}
inline std::vector<std::string> start_line_of(const trailer_parser&, const char*) {
    return {};
}

/// Parses texts; `Parser` is one of the three.
template <class Parser, std::size_t Fields = 8>
class head_reader {
public:
    explicit head_reader(const head_limits& limits = {})
        : parser_{limits, entries_} {}

    /// `ends` are where pieces end; the last piece is the rest.
    parsed_head parse(std::string_view text, const std::vector<std::size_t>& ends = {}) {
        parser_.reset();
        for (const std::size_t end : ends)
            give(text.substr(0, end));
        return give(text);
    }
    parsed_head parse_bytewise(std::string_view text) {
        std::vector<std::size_t> ends;
        for (std::size_t end = 0; end < text.size(); ++end)
            ends.push_back(end);
        return parse(text, ends);
    }

private:
    parsed_head give(std::string_view text) {
        // Elsewhere each time, in memory of exactly that size, for AddressSanitizer.
        const std::vector<char> moved{text.begin(), text.end()};
        parsed_head head;
        head.state = parser_.parse({moved.data(), moved.size()});
        if (head.state == head_state::refused) head.status = parser_.status();
        if (head.state != head_state::complete) return head;
        head.size = parser_.size();
        head.line = start_line_of(parser_, moved.data());
        head.fields = listed(parser_.fields(), moved.data());
        return head;
    }

    std::array<field_entry, Fields> entries_{};
    Parser parser_;
};

} // namespace simplenet::v0::testing
