// Range: the ranges are within the representation, do not overlap, mean the same when they are
// written again, and a body that has them all is as long as announced.

#include "fuzz/fuzz.hpp"
#include "http/codec/multipart.hpp"
#include "http/codec/ranges.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;

using range_verdict = requested_ranges::verdict;

void check_multipart(const requested_ranges& ranges, std::uint64_t size) {
    const multipart_ranges parts{ranges, size, "text/plain", {1, 2}};
    std::uint64_t total = parts.tail().size();
    for (std::size_t at = 0; at < ranges.count; ++at)
        total += parts.part_head(at).size() + ranges.list()[at].size;
    FUZZ_CHECK(parts.total_size() == total);
}

void check_ranges(std::string_view value, std::uint64_t size) {
    const requested_ranges ranges = parse_ranges(value, size);
    FUZZ_CHECK(ranges.count <= max_byte_ranges);
    FUZZ_CHECK((ranges.is == range_verdict::satisfiable) == (ranges.count != 0));
    if (ranges.count == 0) return;

    std::string again = "bytes=";
    for (const byte_range& each : ranges.list()) {
        FUZZ_CHECK(each.size != 0 && each.first < size && each.size <= size - each.first);
        for (const byte_range& other : ranges.list()) {
            const bool apart =
                each.first + each.size <= other.first || other.first + other.size <= each.first;
            FUZZ_CHECK(apart || &each == &other);
        }
        again +=
            std::to_string(each.first) + '-' + std::to_string(each.first + each.size - 1) + ',';
    }
    const requested_ranges repeated = parse_ranges(again, size);
    FUZZ_CHECK(repeated.count == ranges.count && repeated.ranges == ranges.ranges);
    check_multipart(ranges, size);
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    for (const std::uint64_t bytes :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, most}) {
        check_ranges(text, bytes);
        check_ranges("bytes=" + std::string{text}, bytes);
    }
    return 0;
}
