#pragma once
// multipart/byteranges: the body of an answer with several ranges (RFC 9110, section 14.6; RFC
// 2046, section 5.1). Layer http/codec, private.

#include "http/codec/ranges.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Says what stands around the ranges: part_head(0), the bytes of the first range, part_head(1),
/// and so on, then tail().
class multipart_ranges {
public:
    /// @param ranges        Satisfiable; copied.
    /// @param size          Of the whole representation.
    /// @param content_type  Of the representation; empty: the parts do not say one. Copied.
    /// @param random        128 bits that nobody can predict, so that no representation contains
    ///                      the boundary, not even one that was written to.
    multipart_ranges(const requested_ranges& ranges, std::uint64_t size,
                     std::string_view content_type, std::array<std::uint64_t, 2> random);

    /// The value of Content-Type.
    [[nodiscard]] std::string content_type() const;
    /// The value of Content-Length: all heads, all ranges, and the tail.
    ///
    /// Does not overflow: the ranges are parts of the representation, and do not overlap.
    [[nodiscard]] std::uint64_t total_size() const noexcept;

    [[nodiscard]] std::span<const byte_range> list() const noexcept { return ranges_.list(); }
    /// @pre `index` is less than the size of list().
    [[nodiscard]] std::string part_head(std::size_t index) const;
    [[nodiscard]] std::string tail() const;

private:
    std::size_t part_head_size(std::size_t index) const noexcept;

    requested_ranges ranges_;
    std::uint64_t size_;
    std::string type_line_; // "Content-Type: ...", or empty
    std::string delimiter_; // CR LF, "--" and the boundary
};

} // namespace simplenet::v0::http::detail
