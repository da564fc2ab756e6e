#include "httpd/log/access_format.hpp"

#include "httpd/log/escape.hpp"

#include <simplenet/ip/ip_address.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>

#include <arpa/inet.h>

namespace httpd {

namespace {

using std::chrono::system_clock;

constexpr std::size_t longest_number = 20;
constexpr std::size_t longest_address = INET6_ADDRSTRLEN + 1 + longest_number; // with its zone
// Before they are escaped, which may make them six times as long.
constexpr std::size_t longest_text = 4096;
constexpr std::size_t longest_target = 8192; // all that request_line lets through by default

/// The octets as text, each with its length.
struct octet_texts {
    struct text {
        char digits[4]; // four bytes are one store
        unsigned size;
    };
    std::array<text, 256> all{};

    constexpr octet_texts() {
        for (unsigned value = 0; value < all.size(); ++value) {
            auto& each = all[value];
            if (value >= 100) each.digits[each.size++] = static_cast<char>('0' + value / 100);
            if (value >= 10) each.digits[each.size++] = static_cast<char>('0' + value / 10 % 10);
            each.digits[each.size++] = static_cast<char>('0' + value % 10);
        }
    }
};
constexpr octet_texts octets;

template <class Number>
char* append_number(char* to, Number value) noexcept {
    return std::to_chars(to, to + longest_number, value).ptr;
}

/// Writes up to four bytes more than the address has.
char* append_octets(char* to, std::span<const std::byte> address) noexcept {
    for (const std::byte each : address) {
        const auto& text = octets.all[std::to_integer<unsigned>(each)];
        std::memcpy(to, text.digits, sizeof text.digits);
        to += text.size;
        *to++ = '.';
    }
    return to - 1;
}

char* append_address(char* to, const simplenet::ip_address& address) noexcept {
    if (address.is_v4()) return append_octets(to, address.bytes());
    if (address.is_v4_mapped()) return append_octets(to, address.bytes().last(4));
    if (::inet_ntop(AF_INET6, address.bytes().data(), to, INET6_ADDRSTRLEN) == nullptr) return to;
    to += std::strlen(to);
    if (address.scope_id() != 0) {
        *to++ = '%';
        to = append_number(to, address.scope_id());
    }
    return to;
}

char* append_status(char* to, unsigned status) noexcept {
    if (status < 100 || status > 999) return append_number(to, status);
    to[0] = static_cast<char>('0' + status / 100);
    to[1] = static_cast<char>('0' + status / 10 % 10);
    to[2] = static_cast<char>('0' + status % 10);
    return to + 3;
}

std::string_view cut(std::string_view text) noexcept {
    return text.substr(0, longest_text);
}

std::string_view cut_target(std::string_view text) noexcept {
    return text.substr(0, longest_target);
}

/// `-` in place of nothing, as Apache does.
char* append_or_dash(char* to, std::string_view text) noexcept {
    if (text.empty()) {
        *to++ = '-';
        return to;
    }
    return append_escaped<escapes::hex>(to, cut(text));
}

/// A name with a space would add a column, so that is escaped too.
char* append_user(char* to, std::string_view name) noexcept {
    name = cut(name);
    for (auto space = name.find(' '); space != std::string_view::npos; space = name.find(' ')) {
        to = append_escaped<escapes::hex>(to, name.substr(0, space));
        to = append_escape<escapes::hex>(to, ' ');
        name.remove_prefix(space + 1);
    }
    return append_escaped<escapes::hex>(to, name);
}

char* append_combined(char* to, const access_entry& of, system_clock::time_point now,
                      time_text& times) noexcept {
    to = append_address(to, of.peer.address());
    to = append(to, " - ");
    if (of.user.empty())
        *to++ = '-';
    else
        to = append_user(to, of.user);
    *to++ = ' ';
    // Apache writes when the request began.
    to = times.append_apache(to,
                             now - std::chrono::duration_cast<system_clock::duration>(of.duration));
    to = append(to, " \"");
    if (of.method.empty()) {
        *to++ = '-';
    } else {
        if (of.method == "GET") [[likely]] {
            to = append(to, "GET ");
        } else {
            to = append_escaped<escapes::hex>(to, cut(of.method));
            *to++ = ' ';
        }
        to = append_escaped<escapes::hex>(to, cut_target(of.target));
        if (of.version == 11)
            to = append(to, " HTTP/1.1");
        else if (of.version == 10)
            to = append(to, " HTTP/1.0");
    }
    to = append(to, "\" ");
    if (of.status == 0)
        *to++ = '-';
    else
        to = append_status(to, of.status);
    *to++ = ' ';
    if (of.body_bytes == 0)
        *to++ = '-';
    else
        to = append_number(to, of.body_bytes);
    to = append(to, " \"");
    to = append_or_dash(to, of.referer);
    to = append(to, "\" \"");
    to = append_or_dash(to, of.user_agent);
    return append(to, "\"\n");
}

/// Seconds with six digits behind the point.
char* append_seconds(char* to, std::chrono::nanoseconds duration) noexcept {
    const auto microseconds =
        static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0) / 1000);
    to = append_number(to, microseconds / 1'000'000);
    *to++ = '.';
    auto rest = microseconds % 1'000'000;
    for (char* digit = to + 6; digit != to; rest /= 10)
        *--digit = static_cast<char>('0' + rest % 10);
    return to + 6;
}

char* append_text(char* to, std::string_view key, std::string_view value) noexcept {
    to = append(to, key);
    return append_escaped<escapes::json>(to, value);
}

char* append_json(char* to, const access_entry& of, system_clock::time_point now,
                  time_text& times) noexcept {
    to = append(to, R"({"time":")");
    to = times.append_iso(to, now);
    to = append(to, R"(","client":")");
    to = append_address(to, of.peer.address());
    to = append(to, R"(","port":)");
    to = append_number(to, of.peer.port());
    to = append_text(to, R"(,"user":")", cut(of.user));
    to = append_text(to, R"(","method":")", cut(of.method));
    to = append_text(to, R"(","target":")", cut_target(of.target));
    to = append(to, R"(","version":")");
    if (of.version == 11)
        to = append(to, "1.1");
    else if (of.version == 10)
        to = append(to, "1.0");
    to = append(to, R"(","status":)");
    to = append_status(to, of.status);
    to = append(to, R"(,"bytes":)");
    to = append_number(to, of.body_bytes);
    to = append(to, R"(,"seconds":)");
    to = append_seconds(to, of.duration);
    to = append(to, of.complete ? R"(,"complete":true)" : R"(,"complete":false)");
    to = append(to, of.secure ? R"(,"tls":true)" : R"(,"tls":false)");
    to = append_text(to, R"(,"host":")", cut(of.host));
    to = append_text(to, R"(","referer":")", cut(of.referer));
    to = append_text(to, R"(","user_agent":")", cut(of.user_agent));
    to = append_text(to, R"(","site":")", cut(of.site));
    return append(to, "\"}\n");
}

} // namespace

std::size_t room_for_line(const access_entry& of, log_format format) noexcept {
    // The keys, the time, four numbers, the address; the slack of escaped_room() once, because the
    // next text overwrites it.
    constexpr std::size_t rest = 320 + 4 * longest_number + longest_address + 16;
    std::size_t texts = cut_target(of.target).size();
    for (const std::string_view each :
         {of.user, of.method, of.host, of.referer, of.user_agent, of.site})
        texts += cut(each).size();
    return rest + texts * (format == log_format::json ? longest_escape<escapes::json>
                                                      : longest_escape<escapes::hex>);
}

char* append_line(char* to, const access_entry& of, log_format format, system_clock::time_point now,
                  time_text& times) noexcept {
    return format == log_format::json ? append_json(to, of, now, times)
                                      : append_combined(to, of, now, times);
}

} // namespace httpd
