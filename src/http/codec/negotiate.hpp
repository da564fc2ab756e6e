#pragma once
// Accept-Encoding: which content coding an answer may have (RFC 9110, section 12.5.3). Layer
// http/codec, private.

#include <simplenet/http/codec/field_entry.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

/// In the order in which the server prefers them, since they get smaller.
enum class content_coding : std::uint8_t { identity, gzip, br };

/// The value of Content-Encoding; empty for identity, which has no such field.
[[nodiscard]] std::string_view name_of(content_coding coding) noexcept;

/// Thousandths of a qvalue; 0: not acceptable.
struct accepted_codings {
    std::uint16_t identity = 1000;
    std::uint16_t gzip = 0;
    std::uint16_t br = 0;

    friend bool operator==(const accepted_codings&, const accepted_codings&) = default;
};

/// Reads the Accept-Encoding fields of a request, which are one list.
///
/// Without a field any coding is acceptable, but a client that can decode one says so: identity.
/// The same for a list that is malformed. A coding that is listed several times has its lowest
/// qvalue. "x-gzip" is gzip. An unlisted identity is acceptable unless "*" excludes it, and comes
/// after all that is listed.
[[nodiscard]] accepted_codings read_accept_encoding(std::span<const field_entry> fields,
                                                    const char* text) noexcept;

/// The available coding that the client likes most. Nothing if it accepts none, not even identity:
/// 406, or an answer in identity (section 12.5.3 leaves the choice).
///
/// @param gzip, br  Whether they are available. Identity always is.
[[nodiscard]] std::optional<content_coding> choose_coding(const accepted_codings& accepted,
                                                          bool gzip, bool br) noexcept;

} // namespace simplenet::v0::http::detail
