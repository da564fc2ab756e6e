// Lists of entity tags and of codings: their order and how they are spread over fields does not
// matter, strong equality implies weak equality, and an unreadable list lets nothing change.

#include "fuzz/fuzz.hpp"
#include "http/codec/conditions.hpp"
#include "http/codec/negotiate.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;

/// Fields of one name.
class fields_of_a_name {
public:
    fields_of_a_name(std::string_view name, const std::vector<std::string>& values) {
        for (const std::string& value : values) {
            const auto at = static_cast<std::uint32_t>(text_.size());
            (text_ += name) += value;
            const auto name_size = static_cast<std::uint32_t>(name.size());
            entries.push_back(
                {at, name_size, at + name_size, static_cast<std::uint32_t>(value.size())});
        }
    }
    [[nodiscard]] const char* text() const { return text_.c_str(); }

    std::vector<field_entry> entries;

private:
    std::string text_;
};

verdict answer(std::string_view method, std::string_view name,
               const std::vector<std::string>& values, std::string_view tag) {
    const fields_of_a_name fields{name, values};
    return evaluate(method, fields.entries, fields.text(), {.entity_tag = tag});
}

bool matches(const std::vector<std::string>& list, std::string_view tag) {
    return answer("PUT", "If-Match", list, tag) == verdict::proceed;
}
bool weakly_matches(const std::vector<std::string>& list, std::string_view tag) {
    return answer("GET", "If-None-Match", list, tag) == verdict::not_modified;
}
bool readable(const std::string& list) {
    return weakly_matches({list}, "\"a\"") ||
           answer("PUT", "If-None-Match", {list}, "\"a\"") == verdict::proceed;
}

void check_tags(const std::string& left, const std::string& right) {
    const std::string tag = "\"a\"";
    for (const std::string& list : {left, right}) {
        if (matches({list}, tag)) FUZZ_CHECK(weakly_matches({list}, tag));
        if (!readable(list)) FUZZ_CHECK(!matches({list}, tag) && !weakly_matches({list}, tag));
        if (readable(list) && list != "*") {
            FUZZ_CHECK(matches({list + ',' + tag}, tag));
            FUZZ_CHECK(matches({tag, list}, tag) && matches({list, tag}, tag));
            FUZZ_CHECK(weakly_matches({"W/" + tag + " , " + list}, tag));
        }
        if (!is_entity_tag(list)) continue;
        FUZZ_CHECK(weakly_matches({list}, list));
        FUZZ_CHECK(matches({list}, list) == !list.starts_with("W/"));
    }
    FUZZ_CHECK(matches({left, right}, tag) == matches({right, left}, tag));
    if (readable(left) && readable(right) && left != "*" && right != "*")
        FUZZ_CHECK(matches({left, right}, tag) == matches({left + ',' + right}, tag));
}

accepted_codings accepted(const std::vector<std::string>& values) {
    const fields_of_a_name fields{"Accept-Encoding", values};
    return read_accept_encoding(fields.entries, fields.text());
}

void check_codings(const std::string& left, const std::string& right) {
    const accepted_codings both = accepted({left, right});
    FUZZ_CHECK(both == accepted({right, left}));
    FUZZ_CHECK(both.identity <= 1000 && both.gzip <= 1000 && both.br <= 1000);
    if (!left.contains('"') && !right.contains('"'))
        FUZZ_CHECK(both == accepted({left + ',' + right}));

    const auto chosen = choose_coding(both, true, true);
    FUZZ_CHECK(chosen.has_value() == (both.identity != 0 || both.gzip != 0 || both.br != 0));
    if (chosen == content_coding::gzip)
        FUZZ_CHECK(both.gzip >= both.identity && both.gzip > both.br);
    if (chosen == content_coding::br) FUZZ_CHECK(both.br >= both.identity && both.br >= both.gzip);
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string text{reinterpret_cast<const char*>(data), size};
    const std::size_t line = text.find('\n');
    const std::string left = text.substr(0, line);
    const std::string right = line == text.npos ? std::string{} : text.substr(line + 1);
    check_tags(left, right);
    check_codings(left, right);
    return 0;
}
