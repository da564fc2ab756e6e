#include "http/fastcgi/record.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <cstring>

namespace simplenet::v0::http::detail::fastcgi {

namespace {

constexpr char version = 1;
constexpr char responder = 1;
constexpr char keep_connection = 1;

[[nodiscard]] constexpr char byte_of(std::size_t number, unsigned shift) noexcept {
    return static_cast<char>(static_cast<unsigned char>(number >> shift & 0xff));
}
[[nodiscard]] constexpr std::uint32_t number_of(char high, char low) noexcept {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(high)) << 8U |
           static_cast<unsigned char>(low);
}

char* write_length(char* to, std::size_t length) noexcept {
    if (length < 128) {
        *to++ = static_cast<char>(length);
        return to;
    }
    *to++ = byte_of(length | std::size_t{1} << 31U, 24);
    *to++ = byte_of(length, 16);
    *to++ = byte_of(length, 8);
    *to++ = byte_of(length, 0);
    return to;
}

} // namespace

char* write_header(char* to, record_type type, std::size_t content) noexcept {
    const std::array<char, header_size> header{
        version, static_cast<char>(type), 0, 1, byte_of(content, 8), byte_of(content, 0), 0, 0};
    std::memcpy(to, header.data(), header.size());
    return to + header.size();
}

std::array<char, 2 * header_size> begin_request(bool keep) noexcept {
    std::array<char, 2 * header_size> record{};
    char* const content = write_header(record.data(), record_type::begin_request, 8);
    content[1] = responder;
    content[2] = keep ? keep_connection : 0;
    return record;
}

char* write_param_lengths(char* to, std::size_t name, std::size_t value) noexcept {
    return write_length(write_length(to, name), value);
}

answer_reader::step answer_reader::next(std::string_view bytes, std::size_t most) noexcept {
    SIMPLENET_EXPECTS(most != 0, "a step without room");
    const std::size_t all = bytes.size();
    const auto consumed = [&] { return all - bytes.size(); };
    for (;;) {
        switch (phase_) {
        case phase::refused:
            return {step::kind::refused, consumed()};
        case phase::ended:
            return {step::kind::end, consumed()};
        case phase::header:
        case phase::verdict: {
            const std::size_t count = std::min(piece_.size() - held_, bytes.size());
            std::copy_n(bytes.data(), count, piece_.data() + held_);
            bytes.remove_prefix(count);
            held_ = static_cast<std::uint8_t>(held_ + count);
            if (held_ != piece_.size()) return {step::kind::need_more, consumed()};
            held_ = 0;
            if (phase_ == phase::header) {
                if (!take_header()) phase_ = phase::refused;
                break;
            }
            if (static_cast<unsigned char>(piece_[4]) > 3) {
                phase_ = phase::refused;
                break;
            }
            // The first four bytes are the status of the application; see decision 0051.
            status_ = static_cast<detail::fastcgi::protocol_status>(piece_[4]);
            content_ = 0;
            phase_ = phase::padding;
            break;
        }
        case phase::content: {
            const std::size_t count = std::min({std::size_t{content_}, bytes.size(), most});
            if (count == 0) return {step::kind::need_more, consumed()};
            const std::string_view data = bytes.substr(0, count);
            bytes.remove_prefix(count);
            content_ -= static_cast<std::uint32_t>(count);
            if (content_ == 0) phase_ = phase::padding;
            const bool is_out = type_ == record_type::out;
            return {is_out ? step::kind::out : step::kind::err, consumed(), data};
        }
        case phase::padding: {
            const std::size_t count = std::min(std::size_t{padding_}, bytes.size());
            bytes.remove_prefix(count);
            padding_ = static_cast<std::uint8_t>(padding_ - count);
            if (padding_ != 0) return {step::kind::need_more, consumed()};
            phase_ = type_ == record_type::end_request ? phase::ended : phase::header;
            break;
        }
        }
    }
}

bool answer_reader::take_header() noexcept {
    if (piece_[0] != version || number_of(piece_[2], piece_[3]) != 1) return false;
    content_ = number_of(piece_[4], piece_[5]);
    padding_ = static_cast<std::uint8_t>(piece_[6]);
    type_ = static_cast<record_type>(piece_[1]);
    switch (type_) {
    case record_type::end_request:
        phase_ = phase::verdict;
        return content_ == verdict_size;
    case record_type::out:
    case record_type::err: {
        bool& ended = type_ == record_type::out ? out_ended_ : err_ended_;
        // An end may be told again, but nothing follows it.
        if (ended && content_ != 0) return false;
        ended = content_ == 0;
        phase_ = content_ == 0 ? phase::padding : phase::content;
        return true;
    }
    default:
        return false;
    }
}

} // namespace simplenet::v0::http::detail::fastcgi
