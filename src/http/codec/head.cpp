#include "http/codec/head.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/list.hpp"
#include "http/codec/refusal.hpp"
#include "http/codec/scan.hpp"

namespace simplenet::v0::http::detail {

namespace {

using namespace std::string_view_literals;

/// 10 or 11, or the status that refuses.
unsigned version_of(std::string_view text) noexcept {
    if (text.size() != "HTTP/1.1"sv.size() || !text.starts_with("HTTP/") ||
        !ascii::is_digit(text[5]) || text[6] != '.' || !ascii::is_digit(text[7]))
        return refusal::bad_request;
    if (text[5] != '1') return refusal::version_not_supported;
    return text[7] == '0' ? 10 : 11;
}

bool can_begin_request(char byte) noexcept {
    return is_in(token_byte, byte);
}

bool can_begin_response(char byte) noexcept {
    return byte == 'H';
}

} // namespace

// --- lines ---------------------------------------------------------------------------------------

void head_parser::reset(phase begin_with) noexcept {
    line_at_ = searched_ = fields_at_ = count_ = 0;
    status_ = 0;
    empty_lines_ = 0;
    phase_ = begin_with;
}

head_state head_parser::state() const noexcept {
    if (phase_ == phase::complete) return head_state::complete;
    return phase_ == phase::refused ? head_state::refused : head_state::incomplete;
}

head_state head_parser::refuse(unsigned status) noexcept {
    status_ = static_cast<std::uint16_t>(status);
    phase_ = phase::refused;
    return head_state::refused;
}

/// Looks for the end of the current line. The offset of its CR is `longest` at most. The limit is
/// checked against every byte that was searched, not only against the CR: a line that is too long
/// is refused as soon as that is certain, in whatever pieces it arrives.
head_parser::search head_parser::find_line_end(std::string_view bytes, std::uint32_t longest,
                                               unsigned too_long) noexcept {
    const char* const begin = bytes.data();
    // The search ends behind `longest`, so the offsets fit in 32 bits.
    const std::size_t size = std::min<std::size_t>(bytes.size(), std::size_t{longest} + 2);
    const char* const end = begin + size;
    const char* const stop = scan<value_byte>(begin + searched_, end);

    searched_ = static_cast<std::uint32_t>(stop - begin);
    if (searched_ > longest) {
        refuse(too_long);
        return search::refused;
    }
    if (stop == end) return search::more;
    if (*stop == '\r') {
        if (stop + 1 == end) return search::more;
        if (stop[1] == '\n') return search::found;
    }
    refuse(refusal::bad_request); // a bare CR or LF, another control, DEL
    return search::refused;
}

bool head_parser::find_start_line(std::string_view bytes, bool (*can_begin)(char),
                                  unsigned too_long) noexcept {
    for (;;) {
        if (bytes.size() == line_at_) return false;
        const char first = bytes[line_at_];
        // Judged at once: a peer that speaks another protocol, and waits for our answer, would
        // otherwise be kept until a time limit passes.
        if (!can_begin(first) && (first != '\r' || empty_lines_ == most_empty_lines)) {
            refuse(refusal::bad_request);
            return false;
        }
        if (find_line_end(bytes, line_at_ + line_limit_, too_long) != search::found) return false;
        if (searched_ != line_at_) return true;

        // RFC 9112 section 2.2: some clients send an empty line behind a body.
        ++empty_lines_;
        line_at_ = searched_ += 2;
    }
}

void head_parser::take_start_line() noexcept {
    line_at_ = fields_at_ = searched_ += 2;
    phase_ = phase::fields;
}

// --- fields --------------------------------------------------------------------------------------

head_state head_parser::parse_fields(std::string_view bytes) noexcept {
    if (phase_ != phase::fields) return state();
    // The CR of the empty line has to be here at the latest. That line is always allowed.
    const std::uint32_t longest = fields_at_ + std::max(fields_limit_, 2U) - 2;
    for (;;) {
        if (find_line_end(bytes, longest, refusal::fields_too_large) != search::found)
            return state();
        if (searched_ == line_at_) {
            line_at_ = searched_ += 2;
            phase_ = phase::complete;
            return head_state::complete;
        }
        if (!take_field(bytes.data())) return head_state::refused;
        line_at_ = searched_ += 2;
    }
}

bool head_parser::take_field(const char* text) noexcept {
    if (count_ == entries_.size()) {
        refuse(refusal::fields_too_large);
        return false;
    }
    const char* const begin = text + line_at_;
    const char* colon = begin;
    // Ends at the CR at the latest, which is no part of a token.
    while (is_in(token_byte, *colon))
        ++colon;
    // Not a colon: a blank before it, a continuation of the line before (obs-fold), or no colon.
    if (colon == begin || *colon != ':') {
        refuse(refusal::bad_request);
        return false;
    }

    const std::string_view value = trim_blanks({colon + 1, text + searched_});
    entries_[count_++] = {.name_at = line_at_,
                          .name_size = static_cast<std::uint32_t>(colon - begin),
                          .value_at = static_cast<std::uint32_t>(value.data() - text),
                          .value_size = static_cast<std::uint32_t>(value.size())};
    return true;
}

// --- start lines ---------------------------------------------------------------------------------

head_state request_parser::parse(std::string_view bytes) noexcept {
    if (current() == phase::start) {
        if (!find_start_line(bytes, can_begin_request, refusal::uri_too_long)) return state();
        if (!parse_line(bytes.data())) return head_state::refused;
        take_start_line();
    }
    return parse_fields(bytes);
}

/// method SP request-target SP HTTP-version, RFC 9112 section 3. The lenient parsing by blanks that
/// it allows is not offered: recipients differ in it (section 11.2).
bool request_parser::parse_line(const char* text) noexcept {
    const char* const begin = text + line_begin();
    const char* const end = text + line_end();

    const char* const method_end = scan_bytes(token_byte, begin, end);
    const auto method_size = static_cast<std::size_t>(method_end - begin);
    if (method_end == end || *method_end != ' ' || method_size > longest_method) {
        refuse(refusal::bad_request);
        return false;
    }
    const char* const target = method_end + 1;
    const char* const target_end = scan<target_byte>(target, end);
    if (target_end == target || target_end == end || *target_end != ' ') {
        refuse(refusal::bad_request);
        return false;
    }
    const unsigned version = version_of({target_end + 1, end});
    if (version >= refusal::bad_request) {
        refuse(version);
        return false;
    }
    method_at_ = line_begin();
    method_size_ = static_cast<std::uint32_t>(method_size);
    target_size_ = static_cast<std::uint32_t>(target_end - target);
    version_ = static_cast<std::uint8_t>(version);
    return true;
}

head_state response_parser::parse(std::string_view bytes) noexcept {
    if (current() == phase::start) {
        if (!find_start_line(bytes, can_begin_response, refusal::fields_too_large)) return state();
        if (!parse_line(bytes.data())) return head_state::refused;
        take_start_line();
    }
    return parse_fields(bytes);
}

/// HTTP-version SP status-code SP [ reason-phrase ], RFC 9112 section 4. The second SP may be
/// missing with the phrase: servers do that, and no other reading of such a line exists.
bool response_parser::parse_line(const char* text) noexcept {
    const std::string_view line{text + line_begin(), text + line_end()};
    constexpr std::size_t code_at = "HTTP/1.1 "sv.size();
    constexpr std::size_t code_end = code_at + 3;

    const unsigned version = version_of(line.substr(0, code_at - 1));
    if (version >= refusal::bad_request) {
        refuse(version);
        return false;
    }
    if (line.size() < code_end || line[code_at - 1] != ' ' ||
        (line.size() > code_end && line[code_end] != ' ')) {
        refuse(refusal::bad_request);
        return false;
    }
    const std::string_view digits = line.substr(code_at, 3);
    if (!std::ranges::all_of(digits, ascii::is_digit) || digits[0] == '0') {
        refuse(refusal::bad_request);
        return false;
    }
    const std::size_t reason_at = std::min(code_end + 1, line.size());
    reason_at_ = line_begin() + static_cast<std::uint32_t>(reason_at);
    reason_size_ = static_cast<std::uint32_t>(line.size() - reason_at);
    code_ = static_cast<std::uint16_t>((digits[0] - '0') * 100 + (digits[1] - '0') * 10 +
                                       (digits[2] - '0'));
    version_ = static_cast<std::uint8_t>(version);
    return true;
}

} // namespace simplenet::v0::http::detail
