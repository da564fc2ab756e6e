// Targets of requests, and their paths: the normal form is that of a model that works on lists of
// segments, has no dot segments, and cannot be confused with another path.

#include "fuzz/fuzz.hpp"
#include "http/codec/target.hpp"
#include "http/codec/url.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;

using segments = std::vector<std::string>;

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == text.npos) return parts;
        text.remove_prefix(end + 1);
    }
}

/// The decoded segments of a path, the last one empty if it names a folder.
std::optional<segments> expected_segments(std::string_view raw) {
    if (!raw.starts_with('/')) return std::nullopt;
    segments path;
    bool folder = false;
    for (const std::string_view each : split(raw.substr(1), '/')) {
        const auto segment = percent_decode(each);
        if (!segment || segment->contains('\0')) return std::nullopt;
        folder = segment->empty() || segment == "." || segment == "..";
        if (!folder) path.push_back(*segment);
        if (segment != "..") continue;
        if (path.empty()) return std::nullopt;
        path.pop_back();
    }
    if (folder) path.emplace_back();
    return path;
}

std::optional<std::string> normalised(std::string_view raw) {
    // Of exactly this size, so that AddressSanitizer detects writes beyond it.
    std::vector<char> out(raw.size());
    const auto size = normalise_path(raw, out.data());
    if (!size) return std::nullopt;
    FUZZ_CHECK(*size <= raw.size());
    return std::string{out.data(), *size};
}

void check_path(std::string_view raw) {
    const auto path = normalised(raw);
    const auto expected = expected_segments(raw);
    FUZZ_CHECK(path.has_value() == expected.has_value());
    if (!path) return;

    FUZZ_CHECK(path->starts_with('/') && !path->contains("//") && !path->contains('\0'));
    segments found;
    bool slash = false;
    for (const std::string_view each : split(std::string_view{*path}.substr(1), '/')) {
        FUZZ_CHECK(each != "." && each != "..");
        found.push_back(decoded_parameter(each));
        slash = slash || found.back().contains('/');
    }
    FUZZ_CHECK(found == *expected);
    FUZZ_CHECK(has_encoded_slash(*path) == slash);
    FUZZ_CHECK(needs_normalising(raw) || *path == raw);
    FUZZ_CHECK(normalised(percent_encode_path(*path)) == path);
    FUZZ_CHECK(parse_target("GET", percent_encode_path(*path)).has_value());
}

void check_target(std::string_view method, std::string_view text) {
    const auto target = parse_target(method, text);
    if (!target) return;

    for (const char each : text)
        FUZZ_CHECK(each > 0x20 && each < 0x7f && each != '#');
    FUZZ_CHECK(target->path.empty() || target->path.starts_with('/'));
    FUZZ_CHECK(target->path.empty() || percent_decode(target->path).has_value());
    FUZZ_CHECK(percent_decode(target->query).has_value());
    FUZZ_CHECK(target->has_query || target->query.empty());
    const bool has_authority =
        target->is == target_parts::form::absolute || target->is == target_parts::form::authority;
    FUZZ_CHECK(valid_authority(target->authority) == has_authority);
    FUZZ_CHECK((target->is == target_parts::form::authority) == (method == "CONNECT"));
    if (!target->path.empty()) check_path(target->path);
}

/// Host, absolute-form and URLs accept the same, but for what no client can connect to.
void check_host(std::string_view text) {
    const auto parts = split_authority(text);
    const std::string absolute = "http://" + std::string{text};
    if (text.find_first_of("/?#") == text.npos) {
        FUZZ_CHECK(parse_target("GET", absolute).has_value() == parts.has_value());
        const bool reachable = parts && parts->port != 0 && !parts->host.contains('%');
        FUZZ_CHECK(parse_url(absolute).has_value() == reachable);
    } else {
        FUZZ_CHECK(!parts);
    }
    FUZZ_CHECK(valid_authority(text) == parts.has_value());
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    for (const std::string_view method : {"GET", "OPTIONS", "CONNECT"})
        check_target(method, text);
    check_path(text);
    check_host(text);
    return 0;
}
