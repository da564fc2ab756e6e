// Heads of responses and their framing: whole and in pieces one result, which a reader that splits
// the text agrees with; written again, the head means the same.

#include "fuzz/fuzz.hpp"
#include "fuzz/http_pieces.hpp"
#include "http/codec/framing.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;
using testing::parsed_head;

constexpr std::size_t most_fields = 12; // as in parse_in_pieces()

std::optional<std::vector<std::string>> split_status_line(std::string_view line) {
    constexpr std::string_view digits = "0123456789";
    if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ') return {};
    if (line.size() > 12 && line[12] != ' ') return {};
    const std::string_view code = line.substr(9, 3);
    if (!digits.contains(line[7]) || !consists_of(code, digits) || code[0] == '0') return {};
    return std::vector<std::string>{line[7] == '0' ? "10" : "11", std::string{code},
                                    std::string{line.size() > 13 ? line.substr(13) : ""}};
}

/// The framing of a whole head as an answer to `method`, as text.
std::string framed(std::string_view text, std::string_view method) {
    std::array<field_entry, most_fields> entries{};
    response_parser parser{{}, entries};
    FUZZ_CHECK(parser.parse(text) == head_state::complete);
    const unsigned code = parser.code();
    framing is;
    const unsigned refused =
        frame_response(parser.version(), code, method, parser.fields(), text.data(), is);
    if (refused != 0) return std::to_string(refused);

    FUZZ_CHECK(is.kind == framing::kind::length || is.length == 0);
    FUZZ_CHECK(is.kind != framing::kind::until_close || !is.keep_alive);
    FUZZ_CHECK(is.host.empty() && is.length >> 63U == 0);
    const bool no_body = method == "HEAD" || code < 200 || code == 204 || code == 304 ||
                         (method == "CONNECT" && code < 300);
    FUZZ_CHECK(no_body == (is.kind == framing::kind::none));
    return std::to_string(static_cast<int>(is.kind)) + ' ' + std::to_string(is.length) +
           (is.keep_alive ? " keep" : "") + (is.upgrade ? " upgrade" : "");
}

void check_head(std::string_view text) {
    const parsed_head head = parse_in_pieces<response_parser>(text);
    const auto split = split_head(text, most_fields, split_status_line);
    const bool complete = head.state == head_state::complete;
    FUZZ_CHECK(complete == split.has_value());
    if (!complete) return;
    FUZZ_CHECK(head == *split);

    const std::string again = std::string{"HTTP/1."} + head.line[0][1] + ' ' + head.line[1] + ' ' +
                              head.line[2] + "\r\n" + written(head.fields);
    const parsed_head repeated = testing::head_reader<response_parser, most_fields>{}.parse(again);
    FUZZ_CHECK(repeated.size == again.size());
    FUZZ_CHECK(repeated.line == head.line && repeated.fields == head.fields);
    for (const std::string_view method : {"GET", "HEAD", "CONNECT"})
        FUZZ_CHECK(framed(again, method) == framed(text, method));
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    if (size > 4000) return 0; // below the limits, which the reader that splits does not have
    const std::string text{reinterpret_cast<const char*>(data), size};
    check_head(text);
    check_head("HTTP/1.1 200 OK\r\n" + text);
    return 0;
}
