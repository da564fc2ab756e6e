// Answers of FastCGI applications: whole and in pieces one result, for records and for heads; what
// is written in records is read.

#include "fuzz/fuzz.hpp"
#include "fuzz/http_pieces.hpp"
#include "http/fastcgi/cgi_head.hpp"
#include "http/fastcgi/read_records.hpp"
#include "http/fastcgi/record.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;
using testing::read_answer;
using testing::read_records;

void check_records(std::string_view text) {
    const read_answer whole = read_records(text);
    FUZZ_CHECK(whole.consumed <= text.size());
    FUZZ_CHECK(read_records(text, {}, 3) == whole);
    for_each_cutting(text.size(), [&](const std::vector<std::size_t>& ends) {
        FUZZ_CHECK(read_records(text, ends) == whole);
    });
}

void check_head(std::string_view text) {
    const cgi_limits limits{.bytes = 200, .fields = 4};
    cgi_head whole{limits};
    const cgi_head::state verdict = whole.parse(text);
    for_each_cutting(text.size(), [&](const std::vector<std::size_t>& ends) {
        cgi_head head{limits};
        cgi_head::state state = cgi_head::state::incomplete;
        for (const std::size_t end : ends)
            if (state == cgi_head::state::incomplete) state = head.parse(text.substr(0, end));
        if (state == cgi_head::state::incomplete) state = head.parse(text);
        FUZZ_CHECK(state == verdict);
        FUZZ_CHECK(head.size() == whole.size() && head.status() == whole.status());
        FUZZ_CHECK(head.fields().size() == whole.fields().size());
    });
    if (verdict != cgi_head::state::complete) return;
    FUZZ_CHECK(whole.size() <= limits.bytes && !whole.fields().empty());
    FUZZ_CHECK(whole.status() >= 200 && whole.status() <= 599);
    for (const field_entry& each : whole.fields()) {
        FUZZ_CHECK(is_name(each.name(text.data())));
        FUZZ_CHECK(!has_controls(each.value(text.data())));
    }
}

/// Writes `content` in records of sizes that it decides itself.
void check_round_trip(input content) {
    std::string text;
    std::string data;
    while (!content.empty()) {
        const std::string_view part = content.text(1 + content.up_to(40));
        if (part.empty()) break;
        std::array<char, fastcgi::header_size> header{};
        fastcgi::write_header(header.data(), fastcgi::record_type::out, part.size());
        text.append(header.data(), header.size()).append(part);
        data += part;
    }
    text.append("\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0", 16);
    const read_answer answer = read_records(text);
    FUZZ_CHECK(answer.end == read_answer::kind::end && answer.out == data);
    FUZZ_CHECK(answer.consumed == text.size());
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    if (size > 1000) return 0;
    const std::string text{reinterpret_cast<const char*>(data), size};
    check_records(text);
    check_head(text);
    check_round_trip({data, size});
    return 0;
}
