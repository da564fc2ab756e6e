#include "http/codec/multipart.hpp"

#include <simplenet/core/detail/contract.hpp>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view range_name = "Content-Range: ";
constexpr std::string_view closing = "--\r\n";

/// The first delimiter needs no line end before it (RFC 2046: it belongs to the delimiter, and the
/// body begins at a line).
std::size_t skipped_of_delimiter(std::size_t index) noexcept {
    return index == 0 ? line_end.size() : 0;
}

} // namespace

multipart_ranges::multipart_ranges(const requested_ranges& ranges, std::uint64_t size,
                                   std::string_view content_type,
                                   std::array<std::uint64_t, 2> random)
    : ranges_{ranges}
    , size_{size}
    , delimiter_{"\r\n--"} {
    SIMPLENET_EXPECTS(ranges.count != 0, "multipart_ranges needs ranges that can be satisfied");
    if (!content_type.empty()) ((type_line_ += "Content-Type: ") += content_type) += line_end;
    for (std::uint64_t each : random) {
        for (unsigned digit = 0; digit < 16; ++digit) {
            delimiter_ += "0123456789abcdef"[each & 15U];
            each >>= 4U;
        }
    }
}

std::string multipart_ranges::content_type() const {
    return "multipart/byteranges; boundary=" + delimiter_.substr(line_end.size() + 2);
}

std::uint64_t multipart_ranges::total_size() const noexcept {
    std::uint64_t total = delimiter_.size() + closing.size();
    for (std::size_t index = 0; index < ranges_.count; ++index)
        total += part_head_size(index) + ranges_.ranges[index].size;
    return total;
}

std::size_t multipart_ranges::part_head_size(std::size_t index) const noexcept {
    std::array<char, max_content_range> buffer;
    const auto range = write_content_range(buffer, ranges_.ranges[index], size_);
    return delimiter_.size() - skipped_of_delimiter(index) + line_end.size() + type_line_.size() +
           range_name.size() + range.size() + 2 * line_end.size();
}

std::string multipart_ranges::part_head(std::size_t index) const {
    SIMPLENET_EXPECTS(index < ranges_.count, "there is no such range");
    std::array<char, max_content_range> buffer;
    std::string head;
    head.reserve(part_head_size(index));
    head += std::string_view{delimiter_}.substr(skipped_of_delimiter(index));
    head += line_end;
    head += type_line_;
    head += range_name;
    head += write_content_range(buffer, ranges_.ranges[index], size_);
    head += line_end;
    head += line_end;
    return head;
}

std::string multipart_ranges::tail() const {
    std::string text = delimiter_;
    text += closing;
    return text;
}

} // namespace simplenet::v0::http::detail
