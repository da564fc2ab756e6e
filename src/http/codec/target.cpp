#include "http/codec/target.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/list.hpp"
#include "http/codec/uri_characters.hpp"

namespace simplenet::v0::http::detail {

namespace {

/// Removes "http://" or "https://", in any case, from the front.
/// @return Whether it was https; nothing if it was neither.
std::optional<bool> take_http_scheme(std::string_view& text) noexcept {
    const auto take = [&text](std::string_view scheme) {
        if (!iequals(text.substr(0, scheme.size()), scheme)) return false;
        text.remove_prefix(scheme.size());
        return true;
    };
    if (take("http://")) return false;
    if (take("https://")) return true;
    return std::nullopt;
}

/// `text` is a path and perhaps a query.
bool read_path_and_query(std::string_view text, target_parts& into) noexcept {
    if (const auto query = ascii::cut_behind(text, '?')) {
        into.has_query = true;
        into.query = *query;
    }
    into.path = text;
    return uri::consists_of(into.path, uri::sent_path) &&
           uri::consists_of(into.query, uri::sent_query);
}

bool read_target(std::string_view method, std::string_view target, target_parts& into) noexcept {
    if (method == "CONNECT") {
        const auto authority = split_authority(target);
        into.is = target_parts::form::authority;
        into.authority = target;
        return authority && authority->port;
    }
    if (target == "*") {
        into.is = target_parts::form::asterisk;
        return method == "OPTIONS";
    }
    if (target.starts_with('/')) return read_path_and_query(target, into);

    const auto https = take_http_scheme(target);
    if (!https) return false;
    into.is = target_parts::form::absolute;
    into.https = *https;
    into.authority = target.substr(0, target.find_first_of("/?"));
    if (!valid_authority(into.authority)) return false;
    if (!read_path_and_query(target.substr(into.authority.size()), into)) return false;
    if (into.path.empty() && (method != "OPTIONS" || into.has_query)) into.path = "/";
    return true;
}

/// Whether the normalised text `c`, `d` behind a percent sign reads as an escape that is kept.
bool reads_as_kept(int c, int d) noexcept {
    return c == '2' && (d == '5' || d == 'F' || d == 'f');
}

/// The segments of a path, one byte after the other.
class segment_reader {
public:
    explicit segment_reader(std::string_view raw) noexcept
        : left_{raw} {}

    /// At the end of a segment.
    [[nodiscard]] bool at_end() const noexcept { return left_.empty() || left_.front() == '/'; }
    /// At the end of the path.
    [[nodiscard]] bool finished() const noexcept { return left_.empty(); }
    void skip_slash() noexcept { left_.remove_prefix(1); }
    [[nodiscard]] bool at_percent() const noexcept { return !at_end() && left_.front() == '%'; }

    /// The next byte, decoded; -1 for a malformed encoding, and at the end of the segment.
    int next() noexcept {
        if (at_end()) return -1;
        int byte = static_cast<unsigned char>(left_.front());
        std::size_t size = 1;
        if (byte == '%') {
            byte = uri::encoded_byte(left_, 0);
            size = 3;
            if (byte < 0) return -1;
        }
        left_.remove_prefix(size);
        return byte;
    }

private:
    std::string_view left_;
};

/// Appends the segment at `from`, decoded.
/// @return The end of what was written; null if the segment is refused.
char* write_segment(segment_reader& from, char* to) noexcept {
    while (!from.at_end()) {
        const bool encoded = from.at_percent();
        const int byte = from.next();
        if (byte <= 0) return nullptr;
        if (encoded && byte == '/') {
            for (const char each : std::string_view{"%2F"})
                *to++ = each;
            continue;
        }
        *to++ = static_cast<char>(byte);
        if (byte != '%') continue;
        segment_reader ahead = from;
        const int first = ahead.next();
        if (!reads_as_kept(first, ahead.next())) continue;
        *to++ = '2';
        *to++ = '5';
    }
    return to;
}

/// The size of the escape at `at` that normalise_path() kept: 3, or 0 if there is none.
std::size_t kept_escape(std::string_view normalised, std::size_t at) noexcept {
    if (normalised[at] != '%' || normalised.size() - at < 3) return 0;
    return reads_as_kept(normalised[at + 1], normalised[at + 2]) ? 3 : 0;
}

} // namespace

// One object from the beginning to the caller: the processor would wait for a copy of what was
// just written.
std::optional<target_parts> parse_target(std::string_view method,
                                         std::string_view target) noexcept {
    std::optional<target_parts> parts{std::in_place};
    if (!read_target(method, target, *parts)) parts.reset();
    return parts;
}

bool needs_normalising(std::string_view raw) noexcept {
    char before = 0;
    for (const char each : raw) {
        if (each == '%' || (before == '/' && (each == '/' || each == '.'))) return true;
        before = each;
    }
    return false;
}

std::optional<std::size_t> normalise_path(std::string_view raw, char* out) noexcept {
    if (!raw.starts_with('/')) return std::nullopt;
    segment_reader from{raw};
    // Invariant: what is written begins and ends with "/".
    char* end = out;
    *end++ = '/';
    while (!from.finished()) {
        from.skip_slash();
        char* const written = write_segment(from, end);
        if (written == nullptr) return std::nullopt;
        const std::string_view segment{end, static_cast<std::size_t>(written - end)};
        if (segment.empty() || segment == ".") continue;
        if (segment == "..") {
            if (end == out + 1) return std::nullopt;
            do
                --end;
            while (end[-1] != '/');
            continue;
        }
        end = written;
        if (from.finished()) break;
        *end++ = '/';
    }
    return static_cast<std::size_t>(end - out);
}

bool has_encoded_slash(std::string_view normalised) noexcept {
    return normalised.find("%2F") != std::string_view::npos;
}

std::string decoded_parameter(std::string_view normalised) {
    std::string text;
    text.reserve(normalised.size());
    for (std::size_t at = 0; at < normalised.size(); ++at) {
        if (kept_escape(normalised, at) == 0) {
            text += normalised[at];
            continue;
        }
        text += normalised[at + 2] == '5' ? '%' : '/';
        at += 2;
    }
    return text;
}

std::string percent_encode_path(std::string_view normalised) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string text;
    text.reserve(normalised.size());
    for (std::size_t at = 0; at < normalised.size(); ++at) {
        const char each = normalised[at];
        if (uri::is(uri::path, each) || kept_escape(normalised, at) != 0) {
            text += each;
            continue;
        }
        const auto byte = static_cast<unsigned char>(each);
        text += '%';
        text += digits[byte >> 4U];
        text += digits[byte & 15U];
    }
    return text;
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            decoded += text[at];
            continue;
        }
        const int byte = uri::encoded_byte(text, at);
        if (byte < 0) return std::nullopt;
        decoded += static_cast<char>(byte);
        at += 2;
    }
    return decoded;
}

} // namespace simplenet::v0::http::detail
