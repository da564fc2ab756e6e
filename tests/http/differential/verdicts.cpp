// What the codec says about requests, for compare_parsers.py.
//
// Reads cases from the standard input: four bytes with the size, little-endian, then the bytes. For
// each prints one line, with blanks between the words and bytes as hexadecimal digits, "-" if none:
//
//   refused STATUS
//   incomplete head | incomplete body
//   accepted CONSUMED VERSION KEEP-ALIVE KIND METHOD TARGET BODY FIELDS
//
// FIELDS is name=value, separated by commas.

#include "http/codec/chunked.hpp"
#include "http/codec/framing.hpp"
#include "http/codec/head.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {
namespace {

std::string hex(std::string_view bytes) {
    if (bytes.empty()) return "-";
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += "0123456789abcdef"[value >> 4U];
        text += "0123456789abcdef"[value & 15U];
    }
    return text;
}

std::string refused(unsigned status) {
    return "refused " + std::to_string(status);
}

/// The body at the beginning of a text.
struct first_body {
    head_state state = head_state::incomplete;
    unsigned status = 0;
    std::size_t consumed = 0;
    std::string content;
};

first_body take_chunks(std::string_view text) {
    using kind = enum chunked_decoder::step::kind;
    chunked_decoder decoder;
    first_body is;
    for (;;) {
        const auto step = decoder.next(text.substr(is.consumed));
        is.consumed += step.consumed;
        is.content += step.data;
        if (step.kind == kind::data) continue;
        if (step.kind == kind::end) is.state = head_state::complete;
        if (step.kind == kind::refused) {
            is.state = head_state::refused;
            is.status = decoder.status();
        }
        return is;
    }
}

first_body take_body(const framing& frame, std::string_view text) {
    if (frame.kind == framing::kind::chunked) return take_chunks(text);
    if (text.size() < frame.length) return {};
    const auto size = static_cast<std::size_t>(frame.length);
    return {head_state::complete, 0, size, std::string{text.substr(0, size)}};
}

std::string verdict(std::string_view text) {
    std::array<field_entry, 100> entries;
    request_parser head{{}, entries};
    const head_state state = head.parse(text);
    if (state == head_state::refused) return refused(head.status());
    if (state == head_state::incomplete) return "incomplete head";

    framing frame;
    const unsigned refusal = frame_request(head.version(), head.fields(), text.data(), frame);
    if (refusal != 0) return refused(refusal);
    const first_body content = take_body(frame, text.substr(head.size()));
    if (content.state == head_state::refused) return refused(content.status);
    if (content.state == head_state::incomplete) return "incomplete body";

    static constexpr std::array<std::string_view, 3> kinds{"none", "length", "chunked"};
    std::string line = "accepted ";
    line += std::to_string(head.size() + content.consumed) + ' ';
    line += std::to_string(head.version()) + ' ';
    line += frame.keep_alive ? "1 " : "0 ";
    line += kinds.at(static_cast<std::size_t>(frame.kind));
    line += ' ' + hex(head.method(text.data())) + ' ' + hex(head.target(text.data()));
    line += ' ' + hex(content.content) + ' ';
    for (const field_entry& field : head.fields())
        line += hex(field.name(text.data())) + '=' + hex(field.value(text.data())) + ',';
    return line;
}

int run() {
    std::array<unsigned char, 4> prefix{};
    std::string text;
    while (std::fread(prefix.data(), 1, prefix.size(), stdin) == prefix.size()) {
        std::size_t size = 0;
        for (std::size_t at = 0; at < prefix.size(); ++at)
            size |= static_cast<std::size_t>(prefix.at(at)) << (8 * at);
        text.resize(size);
        if (std::fread(text.data(), 1, size, stdin) != size) return 1;
        std::puts(verdict(text).c_str());
        std::fflush(stdout); // the reader waits for it before it sends more
    }
    return 0;
}

} // namespace
} // namespace simplenet::v0::http::detail

int main() {
    return simplenet::http::detail::run();
}
