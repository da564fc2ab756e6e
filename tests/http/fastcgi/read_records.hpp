#pragma once
// read_records: an answer in records, read in pieces.

#include "http/fastcgi/record.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// What a text of records is, however it was cut.
struct read_answer {
    using kind = http::detail::fastcgi::answer_reader::step::kind;

    kind end = kind::need_more;
    std::size_t consumed = 0;
    unsigned status = 0; // if it ends
    std::string out;
    std::string err;

    friend bool operator==(const read_answer&, const read_answer&) = default;
};

/// Reads `text` in pieces that end at `ends`, and steps of at most `most` bytes.
inline read_answer read_records(std::string_view text, const std::vector<std::size_t>& ends = {},
                                std::size_t most = 65535) {
    using http::detail::fastcgi::answer_reader;
    answer_reader reader;
    read_answer all;
    std::size_t piece = 0;
    while (all.end == read_answer::kind::need_more) {
        const std::size_t until = piece < ends.size() ? ends[piece++] : text.size();
        for (;;) {
            const auto step = reader.next(text.substr(all.consumed, until - all.consumed), most);
            all.consumed += step.consumed;
            if (step.is == answer_reader::step::kind::out) {
                all.out += step.data;
            } else if (step.is == answer_reader::step::kind::err) {
                all.err += step.data;
            } else {
                all.end = step.is;
                break;
            }
        }
        if (until == text.size() || all.end != read_answer::kind::need_more) break;
    }
    if (all.end == read_answer::kind::end) all.status = static_cast<unsigned>(reader.status());
    return all;
}

} // namespace simplenet::v0::testing
