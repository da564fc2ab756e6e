// Heads of requests and their framing: whole and in pieces one result, which a reader that splits
// the text agrees with; written again, the head means the same.

#include "fuzz/fuzz.hpp"
#include "fuzz/http_pieces.hpp"
#include "http/codec/framing.hpp"

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;
using testing::parsed_head;

constexpr std::size_t most_fields = 12; // as in parse_in_pieces()

std::optional<std::vector<std::string>> split_request_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t second = first == line.npos ? first : line.find(' ', first + 1);
    if (second == line.npos) return {};
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, second - first - 1);
    const std::string_view version = line.substr(second + 1);
    const bool visible = std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f; });
    if (!is_name(method) || method.size() > 32 || target.empty() || !visible) return {};
    if (version.size() != 8 || !version.starts_with("HTTP/1.")) return {};
    if (!consists_of(version.substr(7), "0123456789")) return {};
    return std::vector<std::string>{std::string{method}, std::string{target},
                                    version == "HTTP/1.0" ? "10" : "11"};
}

/// The framing of a whole head as text.
std::string framed(std::string_view text) {
    std::array<field_entry, most_fields> entries{};
    request_parser parser{{}, entries};
    FUZZ_CHECK(parser.parse(text) == head_state::complete);
    framing is;
    const unsigned refused = frame_request(parser.version(), parser.fields(), text.data(), is);
    if (refused != 0) return std::to_string(refused);

    FUZZ_CHECK(is.kind != framing::kind::until_close);
    FUZZ_CHECK(is.kind == framing::kind::length || is.length == 0);
    FUZZ_CHECK(is.length >> 63U == 0);
    FUZZ_CHECK(!is.host.empty() || parser.version() == 10);
    FUZZ_CHECK(parser.version() == 11 ||
               (!is.upgrade && !is.expects_continue && is.kind != framing::kind::chunked));
    return std::to_string(static_cast<int>(is.kind)) + ' ' + std::to_string(is.length) + ' ' +
           std::string{is.host} + (is.keep_alive ? " keep" : "") +
           (is.expects_continue ? " continue" : "") + (is.upgrade ? " upgrade" : "");
}

void check_head(std::string_view text) {
    const parsed_head head = parse_in_pieces<request_parser>(text);
    const auto split = split_head(text, most_fields, split_request_line);
    const bool complete = head.state == head_state::complete;
    FUZZ_CHECK(complete == split.has_value());
    if (!complete) return;
    FUZZ_CHECK(head == *split);

    const std::string again = head.line[0] + ' ' + head.line[1] + " HTTP/1." + head.line[2][1] +
                              "\r\n" + written(head.fields);
    const parsed_head repeated = testing::head_reader<request_parser, most_fields>{}.parse(again);
    FUZZ_CHECK(repeated.size == again.size());
    FUZZ_CHECK(repeated.line == head.line && repeated.fields == head.fields);
    FUZZ_CHECK(framed(again) == framed(text));
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    if (size > 4000) return 0; // below the limits, which the reader that splits does not have
    const std::string text{reinterpret_cast<const char*>(data), size};
    check_head(text);
    // Chance rarely finds a start line: the same text as fields.
    check_head("POST / HTTP/1.1\r\nHost: a\r\n" + text);
    return 0;
}
