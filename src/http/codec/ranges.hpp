#pragma once
// Range and Content-Range: which bytes of a representation are asked for. Layer http/codec,
// private.

#include <simplenet/core/abi.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

struct byte_range {
    std::uint64_t first = 0;
    std::uint64_t size = 0; // at least 1

    friend bool operator==(const byte_range&, const byte_range&) = default;
};

inline constexpr std::size_t max_byte_ranges = 16;

/// What a Range field asks for.
struct requested_ranges {
    // ignore         the whole representation is sent: 200
    // unsatisfiable  416, with write_unsatisfied_range()
    // satisfiable    206: `list()` has at least one
    enum class verdict : std::uint8_t { ignore, unsatisfiable, satisfiable };

    verdict is = verdict::ignore;
    std::size_t count = 0;
    std::array<byte_range, max_byte_ranges> ranges{};

    [[nodiscard]] std::span<const byte_range> list() const noexcept {
        return std::span{ranges}.first(count);
    }
};

/// Reads the value of a Range field, for a representation of `size` bytes (RFC 9110, section 14).
///
/// The ranges are cut at the end, and in the order of the request; those that begin behind the end
/// are left out. Ignored, as section 14.2 allows: a value that is malformed or has another unit,
/// more than `max_byte_ranges`, and ranges that overlap, since both cost the server much more than
/// the client. A suffix of an empty representation is ignored too: no Content-Range could say what
/// was sent.
[[nodiscard]] requested_ranges parse_ranges(std::string_view value, std::uint64_t size) noexcept;

/// Bytes: "bytes ", three numbers of 20 digits, "-" and "/".
inline constexpr std::size_t max_content_range = 68;

/// Writes "bytes 0-499/1234".
[[nodiscard]] std::string_view write_content_range(std::span<char, max_content_range> to,
                                                   byte_range range, std::uint64_t size) noexcept;
/// Writes "bytes */1234", for 416.
[[nodiscard]] std::string_view write_unsatisfied_range(std::span<char, max_content_range> to,
                                                       std::uint64_t size) noexcept;

} // namespace simplenet::v0::http::detail
