// URLs and references: what is read is written as a text that means the same, and no reference
// leads to something that parse_url() would refuse.

#include "fuzz/fuzz.hpp"
#include "http/codec/authority.hpp"
#include "http/codec/target.hpp"
#include "http/codec/url.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;

bool has_dot_segment(std::string_view path) {
    const std::string closed = std::string{path} + '/';
    return closed.contains("/./") || closed.contains("/../");
}

void check_url(const url& read) {
    FUZZ_CHECK(parse_url(text_of(read)) == read);
    FUZZ_CHECK(read.port != 0 && !read.host.empty());
    FUZZ_CHECK(valid_authority(authority_of(read)));
    FUZZ_CHECK(text_of(read) == origin_of(read) + read.target);
    // A server must understand what the client sends.
    const auto target = parse_target("GET", read.target);
    FUZZ_CHECK(target && target->is == target_parts::form::origin);
    FUZZ_CHECK(!has_dot_segment(target->path));
    const std::string text = text_of(read);
    const auto absolute = parse_target("GET", text);
    FUZZ_CHECK(absolute && absolute->authority == authority_of(read));
}

void check_text(std::string_view text) {
    const auto read = parse_url(text);
    if (!read) return;
    check_url(*read);
    FUZZ_CHECK(resolve(*read, "") == read);
    FUZZ_CHECK(resolve(*read, read->target.starts_with("//") ? "/." + read->target
                                                             : read->target) == read);
}

void check_reference(const url& base, std::string_view reference) {
    const auto resolved = resolve(base, reference);
    if (const auto absolute = parse_url(reference)) FUZZ_CHECK(resolved == absolute);
    if (!resolved) return;
    check_url(*resolved);
    // What comes behind "#" does not change the target.
    FUZZ_CHECK(resolve(base, reference.substr(0, reference.find('#'))) == resolved);
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const std::size_t line = text.find('\n');
    const std::string_view first = text.substr(0, line);
    const std::string_view second = line == text.npos ? first : text.substr(line + 1);

    check_text(text);
    check_text("http://" + std::string{first});
    check_reference(*parse_url("http://a/b/c/d;p?q"), second);
    if (const auto base = parse_url(first)) check_reference(*base, second);
    return 0;
}
