#include "http/client/owned_request.hpp"

#include "http/codec/authority.hpp"
#include "http/codec/list.hpp"
#include "http/codec/method.hpp"

#include <simplenet/http/errc.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

[[nodiscard]] bool is_one_of(std::string_view name,
                             std::span<const std::string_view> names) noexcept {
    return std::ranges::any_of(names, [&](std::string_view each) { return iequals(each, name); });
}

/// They frame the message or belong to the connection, which are the client's own.
constexpr std::array<std::string_view, 9> refused_fields{
    "Content-Length", "Transfer-Encoding", "Expect",         "Upgrade",         "TE",
    "Trailer",        "Keep-Alive",        "HTTP2-Settings", "Proxy-Connection"};

/// They are for one origin (RFC 9110, section 15.4).
constexpr std::array<std::string_view, 5> fields_of_origin{
    "Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "WWW-Authenticate"};

/// They tell of a body that is gone (RFC 9110, section 15.4).
constexpr std::array<std::string_view, 10> fields_of_body{
    "Content-Encoding", "Content-Language", "Content-Location", "Content-Type", "Content-MD5",
    "Content-Digest",   "Repr-Digest",      "Digest",           "Want-Digest",  "Last-Modified"};

template <std::size_t N>
void remove_all(http::fields& from, const std::array<std::string_view, N>& names) {
    for (const std::string_view each : names)
        from.remove(each);
}

void append_length(std::string& head, std::uint64_t length) {
    std::array<char, 20> digits;
    char* const begin = digits.data();
    const char* const end = std::to_chars(begin, begin + digits.size(), length).ptr;
    head.append("Content-Length: ").append(std::string_view{begin, end}).append("\r\n");
}

} // namespace

bool owned_request::is_repeatable() const noexcept {
    return !has_stream() && is_idempotent(method);
}

result<owned_request> take_request(const client_request& asked, bool decompress) {
    auto to = parse_url(asked.url);
    if (!to) return fail(errc::bad_url);
    const bool bad_body =
        (asked.stream && !asked.body.empty()) ||
        (asked.content_length && !asked.stream && *asked.content_length != asked.body.size());
    if (!is_token(asked.method) || asked.method == "CONNECT" || bad_body) {
        return fail(std::errc::invalid_argument);
    }
    owned_request taken;
    taken.method = asked.method;
    taken.to = *std::move(to);
    taken.body = asked.body;
    taken.stream = asked.stream;
    taken.content_length = asked.content_length;
    taken.expect_continue = asked.expect_continue && taken.has_body();
    taken.decompresses = decompress;
    if (asked.fields == nullptr) return taken;
    for (const field each : *asked.fields) {
        const std::string_view value = trim_blanks(each.value);
        if (!is_token(each.name) || !valid_field_value(value) ||
            is_one_of(each.name, refused_fields)) {
            return fail(std::errc::invalid_argument);
        }
        if (iequals(each.name, "Host")) {
            if (!taken.host.empty() || !valid_authority(value)) {
                return fail(std::errc::invalid_argument);
            }
            taken.host = value;
        } else if (iequals(each.name, "Connection")) {
            if (iequals(value, "close")) {
                taken.closes = true;
            } else if (!iequals(value, "keep-alive")) {
                return fail(std::errc::invalid_argument);
            }
        } else {
            if (iequals(each.name, "Accept-Encoding") || iequals(each.name, "Range")) {
                taken.decompresses = false;
            }
            taken.fields.add(each.name, value);
        }
    }
    return taken;
}

namespace {

[[nodiscard]] std::string head_of(const owned_request& asked, std::string_view user_agent) {
    std::string head;
    head.reserve(512);
    head.append(asked.method).append(" ").append(asked.to.target).append(" HTTP/1.1\r\nHost: ");
    head.append(asked.host.empty() ? authority_of(asked.to) : asked.host).append("\r\n");
    for (const field each : asked.fields)
        head.append(each.name).append(": ").append(each.value).append("\r\n");
    if (!user_agent.empty() && !asked.fields.find("User-Agent")) {
        head.append("User-Agent: ").append(user_agent).append("\r\n");
    }
    if (asked.decompresses) head.append("Accept-Encoding: gzip\r\n");
    if (asked.has_stream()) {
        if (asked.content_length) {
            append_length(head, *asked.content_length);
        } else {
            head.append("Transfer-Encoding: chunked\r\n");
        }
    } else if (!asked.body.empty() || anticipates_body(asked.method)) {
        append_length(head, asked.body.size());
    }
    if (asked.expect_continue) head.append("Expect: 100-continue\r\n");
    if (asked.closes) head.append("Connection: close\r\n");
    head.append("\r\n");
    return head;
}

} // namespace

exchange_request message_of(const owned_request& asked, std::string_view user_agent) {
    return {.method = asked.method,
            .url = text_of(asked.to),
            .head = head_of(asked, user_agent),
            .body = asked.body,
            .stream = asked.stream,
            .content_length = asked.content_length,
            .is_secure = asked.to.secure,
            .expect_continue = asked.expect_continue,
            .closes = asked.closes,
            .decompresses = asked.decompresses,
            .upgrades = asked.upgrades};
}

result<bool> redirect(owned_request& asked, unsigned status, const http::fields& answer) {
    const bool keeps_method = status == 307 || status == 308;
    if (!keeps_method && status != 301 && status != 302 && status != 303) return false;
    const auto location = answer.find("Location");
    if (!location) return false;
    if (answer.count("Location") > 1) return fail(errc::bad_response);
    const bool becomes_get =
        status == 303 ? asked.method != "HEAD" : !keeps_method && asked.method == "POST";
    if (asked.has_stream() && !becomes_get) return false;
    auto to = resolve(asked.to, *location);
    if (!to) return fail(errc::bad_url);
    if (asked.to.secure && !to->secure) return fail(std::errc::operation_not_permitted);
    if (becomes_get) {
        asked.method = "GET";
        asked.body = {};
        asked.stream = {};
        asked.content_length.reset();
        asked.expect_continue = false;
        remove_all(asked.fields, fields_of_body);
    }
    if (origin_of(*to) != origin_of(asked.to)) {
        asked.host.clear();
        remove_all(asked.fields, fields_of_origin);
    }
    asked.to = *std::move(to);
    return true;
}

} // namespace simplenet::v0::http::detail
