#include "http/codec/chunked.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/framing.hpp"
#include "http/codec/refusal.hpp"
#include "http/codec/scan.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::uint8_t most_digits = 16;
constexpr std::uint64_t free_extensions = std::uint64_t{16} * 1024;
// What a signed number of another recipient can hold, too.
constexpr std::uint64_t longest_body = std::numeric_limits<std::int64_t>::max();

} // namespace

struct chunked_decoder::trailer_section {
    explicit trailer_section(const chunked_limits& limits)
        : entries(limits.trailer_count)
        , parser{{.line = 0, .fields = limits.trailers}, entries} {}

    std::string text;
    std::vector<field_entry> entries;
    trailer_parser parser;
};

chunked_decoder::chunked_decoder(const chunked_limits& limits) noexcept
    : limits_{limits} {}
chunked_decoder::chunked_decoder(chunked_decoder&&) noexcept = default;
chunked_decoder& chunked_decoder::operator=(chunked_decoder&&) noexcept = default;
chunked_decoder::~chunked_decoder() = default;

void chunked_decoder::reset() noexcept {
    left_ = decoded_ = extensions_ = 0;
    extensions_of_chunk_ = 0;
    status_ = 0;
    digits_ = 0;
    phase_ = phase::size;
    trailers_.reset();
}

chunked_decoder::step chunked_decoder::next_into(std::string_view input, mutable_buffer into) {
    const step made = next(input.substr(0, into.size()));
    if (!made.data.empty()) std::memcpy(into.data(), made.data.data(), made.data.size());
    return made;
}

chunked_decoder::step chunked_decoder::next(std::string_view input) {
    std::size_t at = 0;
    for (;;) {
        if (phase_ == phase::refused) return {step::kind::refused, at, {}};
        if (phase_ == phase::ended) return {step::kind::end, at, {}};
        if (at == input.size()) return {step::kind::need_more, at, {}};

        if (phase_ == phase::data) {
            const auto size =
                static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - at));
            skip(size);
            return {step::kind::data, at + size, input.substr(at, size)};
        }
        if (phase_ == phase::trailers)
            at += take_trailers(input.substr(at));
        else
            take_byte(input[at++]);
    }
}

std::uint64_t chunked_decoder::rest_of_chunk() const noexcept {
    return phase_ == phase::data ? left_ : 0;
}

void chunked_decoder::skip(std::uint64_t size) noexcept {
    SIMPLENET_EXPECTS(size <= rest_of_chunk(), "the chunk has less data");
    left_ -= size;
    decoded_ += size;
    if (left_ == 0 && phase_ == phase::data) phase_ = phase::data_cr;
}

void chunked_decoder::refuse(unsigned status) noexcept {
    status_ = status;
    phase_ = phase::refused;
}

// --- the lines of chunks -------------------------------------------------------------------------

void chunked_decoder::take_byte(char byte) noexcept {
    switch (phase_) {
    case phase::size:
        return take_size(byte);
    case phase::extension:
    case phase::quoted:
    case phase::escaped:
        return take_extension(byte);
    case phase::size_lf:
        return byte == '\n' ? end_line() : refuse(refusal::bad_request);
    case phase::data_cr:
        return byte == '\r' ? void(phase_ = phase::data_lf) : refuse(refusal::bad_request);
    case phase::data_lf:
        return byte == '\n' ? void(phase_ = phase::size) : refuse(refusal::bad_request);
    case phase::last_lf:
        return byte == '\n' ? void(phase_ = phase::ended) : refuse(refusal::bad_request);
    case phase::data:
    case phase::trailers:
    case phase::ended:
    case phase::refused:
        break;
    }
}

void chunked_decoder::take_size(char byte) noexcept {
    if (const int digit = ascii::hex_value(byte); digit >= 0) {
        if (digits_ == most_digits) return refuse(refusal::bad_request);
        ++digits_;
        left_ = left_ << 4U | static_cast<unsigned>(digit);
        return;
    }
    // RFC 9112 would have blanks before an extension ignored. Nobody sends them, and other parsers
    // refuse them.
    if (digits_ == 0 || left_ > longest_body - decoded_ || (byte != '\r' && byte != ';'))
        return refuse(refusal::bad_request);
    phase_ = byte == ';' ? phase::extension : phase::size_lf;
}

/// chunk-ext of RFC 9112 section 7.1.1, of which only the classes of bytes are checked, and that
/// strings end: a recipient that lets a string go on behind the line would find another chunk.
void chunked_decoder::take_extension(char byte) noexcept {
    if (byte == '\r' && phase_ == phase::extension) {
        phase_ = phase::size_lf;
        return;
    }
    ++extensions_;
    ++extensions_of_chunk_;
    if (extensions_of_chunk_ > limits_.extensions || extensions_ > free_extensions + decoded_)
        return refuse(refusal::bad_request);

    const bool blank = byte == ' ' || byte == '\t';
    if (phase_ == phase::extension) {
        if (byte == '"')
            phase_ = phase::quoted;
        else if (!is_in(token_byte, byte) && !blank && byte != ';' && byte != '=')
            refuse(refusal::bad_request);
    } else if (!is_in(value_byte, byte)) {
        refuse(refusal::bad_request);
    } else if (phase_ == phase::escaped) {
        phase_ = phase::quoted;
    } else if (byte == '"') {
        phase_ = phase::extension;
    } else if (byte == '\\') {
        phase_ = phase::escaped;
    }
}

void chunked_decoder::end_line() noexcept {
    phase_ = left_ == 0 ? phase::trailers : phase::data;
    digits_ = 0;
    extensions_of_chunk_ = 0;
}

// --- trailers ------------------------------------------------------------------------------------

/// Returns how many bytes of `input`, which is not empty, it consumed.
std::size_t chunked_decoder::take_trailers(std::string_view input) {
    if (!trailers_) {
        // Most bodies have none, and need no memory for them.
        if (input.front() == '\r') {
            phase_ = phase::last_lf;
            return 1;
        }
        trailers_ = std::make_unique<trailer_section>(limits_);
    }
    // No more than the limit: what is behind is not looked at, and may be the next message.
    std::string& text = trailers_->text;
    const std::size_t had = text.size();
    text.append(input.substr(0, std::max<std::size_t>(limits_.trailers, 2) - had));

    trailer_parser& parser = trailers_->parser;
    switch (parser.parse(text)) {
    case head_state::incomplete:
        return text.size() - had;
    case head_state::refused:
        refuse(parser.status());
        return 0;
    case head_state::complete:
        break;
    }
    text.resize(parser.size());
    const bool forbidden = std::ranges::any_of(parser.fields(), [&text](const field_entry& each) {
        return forbidden_in_trailers(each.name(text.data()));
    });
    if (forbidden) {
        refuse(refusal::bad_request);
        return 0;
    }
    phase_ = phase::ended;
    return text.size() - had;
}

std::span<const field_entry> chunked_decoder::trailers() const noexcept {
    return trailers_ ? trailers_->parser.fields() : std::span<const field_entry>{};
}

const char* chunked_decoder::trailer_text() const noexcept {
    return trailers_ ? trailers_->text.data() : nullptr;
}

// --- encoding ------------------------------------------------------------------------------------

std::size_t write_chunk_head(char* into, std::uint64_t size) noexcept {
    SIMPLENET_EXPECTS(size != 0, "a chunk without data would end the body");
    const auto digits = static_cast<std::size_t>(std::bit_width(size) + 3) / 4;
    for (std::size_t at = digits; at != 0; size >>= 4U)
        into[--at] = "0123456789abcdef"[size & 15U];
    return static_cast<std::size_t>(std::ranges::copy(chunk_end, into + digits).out - into);
}

} // namespace simplenet::v0::http::detail
