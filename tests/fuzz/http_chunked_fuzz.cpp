// Chunked bodies: whole and in pieces one result, which a decoder that splits the text at line ends
// agrees with; what is encoded is decoded.

#include "fuzz/fuzz.hpp"
#include "fuzz/http_pieces.hpp"
#include "http/codec/decoded_body.hpp"
#include "http/codec/framing.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace http::detail;
using testing::decode;
using testing::decoded_body;
using testing::step_kind;

bool is_extension(std::string_view text) {
    if (text.empty()) return true;
    if (text.front() != ';') return false;
    bool quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char each = text[at];
        if (quoted && each == '\\' && ++at == text.size()) return false;
        if (each == '"') quoted = !quoted;
        if (!quoted && each != '"' && !is_name({&each, 1}) &&
            !std::string_view{" \t;="}.contains(each))
            return false;
    }
    return !quoted && !has_controls(text);
}

/// The same as decode(), but by splitting; nothing unless the body is complete.
std::optional<decoded_body> split_body(std::string_view text) {
    decoded_body body{
        .end = step_kind::end, .status = 0, .consumed = 0, .data = {}, .trailers = {}};
    std::string_view rest = text;
    for (;;) {
        const auto line = take_line(rest);
        if (!line) return {};
        std::uint64_t size = 0;
        const char* const end = line->data() + line->size();
        const auto parsed = std::from_chars(line->data(), end, size, 16);
        const auto digits = static_cast<std::size_t>(parsed.ptr - line->data());
        if (parsed.ec != std::errc{} || line->front() == '-' || digits > 16) return {};
        if (!is_extension(line->substr(digits))) return {};
        if (size == 0) break;
        if (rest.size() < 2 || size > rest.size() - 2 || rest.substr(size, 2) != "\r\n") return {};
        body.data += rest.substr(0, size);
        rest.remove_prefix(size + 2);
    }
    auto trailers = take_fields(rest, chunked_limits{}.trailer_count);
    if (!trailers) return {};
    for (const auto& [name, value] : *trailers)
        if (forbidden_in_trailers(name)) return {};
    body.trailers = *std::move(trailers);
    body.consumed = text.size() - rest.size();
    return body;
}

void check_body(std::string_view text) {
    const chunked_limits narrow{.extensions = 5, .trailers = 20, .trailer_count = 2};
    const decoded_body whole = decode(text);
    const decoded_body whole_of_narrow = decode(text, {}, narrow);
    for_each_cutting(text.size(), [&](const std::vector<std::size_t>& ends) {
        FUZZ_CHECK(decode(text, ends) == whole);
        FUZZ_CHECK(decode(text, ends, narrow) == whole_of_narrow);
    });
    const auto split = split_body(text);
    FUZZ_CHECK((whole.end == step_kind::end) == split.has_value());
    if (split) FUZZ_CHECK(whole == *split);
    if (whole_of_narrow.end == step_kind::end) FUZZ_CHECK(whole_of_narrow == whole);
}

/// Encodes `content` in chunks of sizes that it decides itself.
void check_round_trip(input content) {
    std::string text;
    std::string data;
    while (!content.empty()) {
        const std::string_view part = content.text(1 + content.up_to(40));
        if (part.empty()) break;
        std::array<char, longest_chunk_head> line{};
        text.append(line.data(), write_chunk_head(line.data(), part.size()));
        text.append(part).append(chunk_end);
        data += part;
    }
    const decoded_body body = decode(text.append(last_chunk));
    FUZZ_CHECK(body.end == step_kind::end && body.data == data && body.consumed == text.size());
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    if (size > 1000) return 0; // below the limits, which the decoder that splits does not have
    const std::string text{reinterpret_cast<const char*>(data), size};
    check_body(text);
    check_body("0\r\n" + text); // as trailers
    check_round_trip({data, size});
    return 0;
}
