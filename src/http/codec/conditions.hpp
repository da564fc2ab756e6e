#pragma once
// Conditional requests: If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range
// (RFC 9110, section 13). Layer http/codec, private.

#include <simplenet/http/codec/field_entry.hpp>

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

/// The representation that a request would be answered with, or that it would change.
struct current_representation {
    bool exists = true;
    std::string_view entity_tag;              // with its quotes and "W/"; empty: it has none
    std::optional<std::time_t> last_modified; // as the answer would say it
};

enum class verdict : std::uint8_t {
    proceed,             // as if the request had no conditions
    not_modified,        // 304, with ETag, Date, Cache-Control, Expires, Vary of the 200
    precondition_failed, // 412
};

/// Whether a request may have a field that the functions below look for. It seldom has.
[[nodiscard]] bool may_be_conditional(std::span<const field_entry> fields,
                                      const char* text) noexcept;

/// Evaluates the conditions of a request in the order of RFC 9110, section 13.2.2.
///
/// Only for requests that would be answered with 2xx otherwise (section 13.2.1). Several fields of
/// one name are one list. A list of tags that cannot be read is a condition that does not hold: it
/// never lets a change proceed, and never turns an answer to GET into 304. Dates that cannot be
/// read are ignored, as section 13.1 demands.
///
/// @param text  What the entries refer to.
[[nodiscard]] verdict evaluate(std::string_view method, std::span<const field_entry> fields,
                               const char* text, const current_representation& current) noexcept;

/// The value of Range, for parse_ranges(), if the request has one that is to be honoured: by GET
/// only (section 14.2), not with several Range fields, and only if If-Range holds (section 13.1.5).
/// A tag is compared strongly, and a date must be exactly that of the last change.
///
/// @pre evaluate() said `proceed`.
[[nodiscard]] std::optional<std::string_view>
range_to_apply(std::string_view method, std::span<const field_entry> fields, const char* text,
               const current_representation& current) noexcept;

/// Whether `text` is an entity-tag (section 8.8.3).
[[nodiscard]] bool is_entity_tag(std::string_view text) noexcept;

/// The same bytes in every respect: both are equal, and neither is weak (section 8.8.3.2).
[[nodiscard]] bool strongly_equal(std::string_view left, std::string_view right) noexcept;
/// As good as the same: equal apart from "W/".
[[nodiscard]] bool weakly_equal(std::string_view left, std::string_view right) noexcept;

} // namespace simplenet::v0::http::detail
