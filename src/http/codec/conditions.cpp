#include "http/codec/conditions.hpp"

#include "http/codec/date.hpp"
#include "http/codec/list.hpp"

#include <algorithm>
#include <cstddef>

namespace simplenet::v0::http::detail {

namespace {

using field_list = std::span<const field_entry>;

constexpr std::string_view weak_mark = "W/"; // case-sensitive

/// The entity-tag at the front of `text`: its size, or 0 if there is none.
std::size_t entity_tag_size(std::string_view text) noexcept {
    const std::size_t opening = text.starts_with(weak_mark) ? weak_mark.size() : 0;
    if (!text.substr(opening).starts_with('"')) return 0;
    for (std::size_t at = opening + 1; at < text.size(); ++at) {
        if (text[at] == '"') return at + 1;
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte <= 0x20 || byte == 0x7f) return 0;
    }
    return 0;
}

std::string_view opaque_tag(std::string_view tag) noexcept {
    if (tag.starts_with(weak_mark)) tag.remove_prefix(weak_mark.size());
    return tag;
}

void skip_blanks(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

/// What If-Match or If-None-Match say about the current representation.
///
/// absent      there is no such field
/// matched     "*", or a tag in the list
/// unmatched   a list without it
/// unreadable  neither a list nor "*"
enum class tag_match : std::uint8_t { absent, matched, unmatched, unreadable };

using tag_comparison = bool (*)(std::string_view, std::string_view) noexcept;

tag_match match_list(std::string_view list, tag_comparison equal,
                     std::string_view current) noexcept {
    tag_match found = tag_match::unmatched;
    for (skip_blanks(list); !list.empty(); skip_blanks(list)) {
        if (list.starts_with(',')) { // an empty element: RFC 9110, section 5.6.1.2
            list.remove_prefix(1);
            continue;
        }
        const std::size_t size = entity_tag_size(list);
        if (size == 0) return tag_match::unreadable;
        if (!current.empty() && equal(list.substr(0, size), current)) found = tag_match::matched;
        list.remove_prefix(size);
        skip_blanks(list);
        if (!list.empty() && !list.starts_with(',')) return tag_match::unreadable;
    }
    return found;
}

tag_match match_fields(field_list fields, const char* text, std::string_view name,
                       tag_comparison equal, const current_representation& current) noexcept {
    tag_match found = tag_match::absent;
    bool any = false; // "*", which stands alone
    for (const field_entry& field : fields) {
        if (!iequals(field.name(text), name)) continue;
        if (any) return tag_match::unreadable;
        any = field.value(text) == "*";
        if (any) {
            if (found != tag_match::absent) return tag_match::unreadable;
            found = current.exists ? tag_match::matched : tag_match::unmatched;
            continue;
        }
        const tag_match here = match_list(field.value(text), equal, current.entity_tag);
        if (here == tag_match::unreadable) return here;
        if (found != tag_match::matched) found = here;
    }
    return found;
}

/// The value of the field, if there is exactly one of this name.
std::optional<std::string_view> only_value(field_list fields, const char* text,
                                           std::string_view name) noexcept {
    std::optional<std::string_view> value;
    for (const field_entry& field : fields) {
        if (!iequals(field.name(text), name)) continue;
        if (value) return std::nullopt;
        value = field.value(text);
    }
    return value;
}

bool has_field(field_list fields, const char* text, std::string_view name) noexcept {
    for (const field_entry& field : fields)
        if (iequals(field.name(text), name)) return true;
    return false;
}

/// Whether the representation was changed after the date of this field; nothing if one of the two
/// is unknown.
std::optional<bool> changed_since(field_list fields, const char* text, std::string_view name,
                                  const current_representation& current) noexcept {
    const auto value = only_value(fields, text, name);
    if (!value || !current.last_modified) return std::nullopt;
    const auto date = parse_date(*value);
    if (!date) return std::nullopt;
    return *current.last_modified > *date;
}

} // namespace

bool may_be_conditional(std::span<const field_entry> fields, const char* text) noexcept {
    for (const field_entry& field : fields) { // If-..., Range
        const char first = to_lower(text[field.name_at]);
        if (first == 'i' || first == 'r') return true;
    }
    return false;
}

verdict evaluate(std::string_view method, std::span<const field_entry> fields, const char* text,
                 const current_representation& current) noexcept {
    // The numbers are those of section 13.2.2.
    const bool reads = method == "GET" || method == "HEAD";
    const tag_match wanted = match_fields(fields, text, "If-Match", &strongly_equal, current);
    if (wanted != tag_match::absent) { // 1
        if (wanted != tag_match::matched) return verdict::precondition_failed;
    } else if (changed_since(fields, text, "If-Unmodified-Since", current) == true) { // 2
        return verdict::precondition_failed;
    }

    const tag_match unwanted = match_fields(fields, text, "If-None-Match", &weakly_equal, current);
    if (unwanted == tag_match::matched) // 3
        return reads ? verdict::not_modified : verdict::precondition_failed;
    if (unwanted == tag_match::unreadable && !reads) return verdict::precondition_failed;
    if (unwanted == tag_match::absent && reads &&
        changed_since(fields, text, "If-Modified-Since", current) == false) { // 4
        return verdict::not_modified;
    }
    return verdict::proceed;
}

std::optional<std::string_view> range_to_apply(std::string_view method,
                                               std::span<const field_entry> fields,
                                               const char* text,
                                               const current_representation& current) noexcept {
    if (method != "GET") return std::nullopt;
    const auto range = only_value(fields, text, "Range");
    if (!range || !has_field(fields, text, "If-Range")) return range;
    const auto condition = only_value(fields, text, "If-Range");
    if (!condition) return std::nullopt;
    if (is_entity_tag(*condition)) {
        if (!strongly_equal(*condition, current.entity_tag)) return std::nullopt;
        return range;
    }
    const auto date = parse_date(*condition);
    if (!date || date != current.last_modified) return std::nullopt;
    return range;
}

bool is_entity_tag(std::string_view text) noexcept {
    return !text.empty() && entity_tag_size(text) == text.size();
}

bool strongly_equal(std::string_view left, std::string_view right) noexcept {
    return left == right && !left.starts_with(weak_mark);
}

bool weakly_equal(std::string_view left, std::string_view right) noexcept {
    return opaque_tag(left) == opaque_tag(right);
}

} // namespace simplenet::v0::http::detail
