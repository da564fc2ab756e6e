#pragma once
// What the decoder of chunks makes of a text, as a value that tests compare; whole or in pieces.

#include "http/codec/chunked.hpp"
#include "http/codec/parsed_heads.hpp"

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {

using http::detail::chunked_decoder;
using http::detail::chunked_limits;
using step_kind = enum chunked_decoder::step::kind;

/// What became of a body.
struct decoded_body {
    step_kind end = step_kind::need_more;
    unsigned status = 0;
    std::size_t consumed = 0; // unless it was refused
    std::string data;
    field_list trailers;

    friend bool operator==(const decoded_body&, const decoded_body&) = default;
    friend std::ostream& operator<<(std::ostream& out, const decoded_body& body) {
        out << "end " << static_cast<int>(body.end) << " status " << body.status << " consumed "
            << body.consumed << " data " << body.data;
        for (const auto& [name, value] : body.trailers)
            out << " [" << name << "]=[" << value << ']';
        return out;
    }
};

/// Decodes `text` in pieces that end at `ends` and at its end.
inline decoded_body decode(std::string_view text, std::vector<std::size_t> ends = {},
                           const chunked_limits& limits = {}) {
    chunked_decoder decoder{limits};
    decoded_body body;
    ends.push_back(text.size());
    for (const std::size_t end : ends) {
        for (;;) {
            const std::vector<char> piece(text.begin() + body.consumed, text.begin() + end);
            const auto step = decoder.next({piece.data(), piece.size()});
            body.consumed += step.consumed;
            body.data += step.data;
            body.end = step.kind;
            if (step.kind != step_kind::data) break;
        }
    }
    if (body.end == step_kind::refused) {
        body.status = decoder.status();
        body.consumed = 0;
    }
    if (body.end == step_kind::end)
        body.trailers = listed(decoder.trailers(), decoder.trailer_text());
    return body;
}

} // namespace simplenet::v0::testing
