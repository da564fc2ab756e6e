#include "http/codec/framing.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/authority.hpp"
#include "http/codec/length.hpp"
#include "http/codec/list.hpp"
#include "http/codec/refusal.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace simplenet::v0::http::detail {

namespace {

/// Judges the only Transfer-Encoding. 0: it is `chunked` and nothing else.
unsigned refusal_of_codings(std::string_view value) noexcept {
    bool chunked_is_last = false;
    std::size_t chunked_count = 0;
    std::size_t count = 0;
    const bool all_good = for_each_element(value, [&](std::string_view element) {
        const std::string_view name = trim_blanks(element.substr(0, element.find(';')));
        ++count;
        // A parameter of `chunked` is an error: it defines none (RFC 9112 section 7.1).
        chunked_is_last = iequals(element, "chunked");
        if (iequals(name, "chunked")) ++chunked_count;
        return is_token(name);
    });
    if (!all_good || !chunked_is_last || chunked_count != 1) return refusal::bad_request;
    return count == 1 ? 0 : refusal::not_implemented;
}

// --- fields --------------------------------------------------------------------------------------

/// What one pass over the fields finds.
struct gathered {
    unsigned length_count = 0;
    unsigned coding_count = 0;
    unsigned host_count = 0;
    bool close = false;
    bool keep_alive = false;
    bool upgrade_option = false;
    bool upgrade_field = false;
    bool expects_continue = false;
    bool expects_other = false;
    std::string_view length;
    std::string_view coding;
    std::string_view host;
};

void gather_connection(gathered& all, std::string_view value) noexcept {
    // A quoted string is no option; what stands before it counts.
    static_cast<void>(for_each_element(value, [&all](std::string_view option) {
        if (iequals(option, "close")) all.close = true;
        if (iequals(option, "keep-alive")) all.keep_alive = true;
        if (iequals(option, "upgrade")) all.upgrade_option = true;
        return true;
    }));
}

void gather_expectations(gathered& all, std::string_view value) noexcept {
    const bool good = for_each_element(value, [&all](std::string_view expectation) {
        if (iequals(expectation, "100-continue"))
            all.expects_continue = true;
        else if (!expectation.empty())
            all.expects_other = true;
        return true;
    });
    if (!good) all.expects_other = true;
}

gathered gather(std::span<const field_entry> fields, const char* text) noexcept {
    gathered all;
    for (const field_entry& field : fields) {
        const std::string_view name = field.name(text);
        const std::string_view value = field.value(text);
        // Most fields are none of these, and most of those differ in size already.
        switch (name.size()) {
        case 4:
            if (!iequals(name, "host")) break;
            ++all.host_count;
            all.host = value;
            break;
        case 6:
            if (iequals(name, "expect")) gather_expectations(all, value);
            break;
        case 7:
            if (iequals(name, "upgrade") && !value.empty()) all.upgrade_field = true;
            break;
        case 10:
            if (iequals(name, "connection")) gather_connection(all, value);
            break;
        case 14:
            if (!iequals(name, "content-length")) break;
            ++all.length_count;
            all.length = value;
            break;
        case 17:
            if (!iequals(name, "transfer-encoding")) break;
            ++all.coding_count;
            all.coding = value;
            break;
        default:
            break;
        }
    }
    return all;
}

/// What requests and responses have in common. `kind` stays none where the fields name no body.
/// @return 0, or the status that refuses.
unsigned take_common(unsigned version, const gathered& all, framing& is) noexcept {
    is.keep_alive = !all.close && (version != 10 || all.keep_alive);
    is.upgrade = version != 10 && all.upgrade_option && all.upgrade_field;

    if (all.coding_count != 0) {
        if (all.coding_count > 1 || all.length_count != 0 || version == 10)
            return refusal::bad_request;
        is.kind = framing::kind::chunked;
        return refusal_of_codings(all.coding);
    }
    if (all.length_count != 0) {
        // RFC 9110 section 8.6 allows to merge equal ones; recipients differ in whether they do.
        const auto length = parse_length(all.length);
        if (all.length_count > 1 || !length) return refusal::bad_request;
        is.kind = framing::kind::length;
        is.length = *length;
    }
    return 0;
}

} // namespace

unsigned frame_request(unsigned version, std::span<const field_entry> fields, const char* text,
                       framing& into) noexcept {
    const gathered all = gather(fields, text);
    into = {};
    if (const unsigned refused = take_common(version, all, into); refused != 0) return refused;

    if (all.host_count > 1 || (all.host_count == 0 && version != 10)) return refusal::bad_request;
    if (all.host_count == 1 && !valid_authority(all.host)) return refusal::bad_request;
    if (all.expects_other) return refusal::expectation_failed;
    // RFC 9110 section 10.1.1: to be ignored in HTTP/1.0.
    into.expects_continue = all.expects_continue && version != 10;
    into.host = all.host;
    return 0;
}

unsigned frame_response(unsigned version, unsigned code, std::string_view method,
                        std::span<const field_entry> fields, const char* text,
                        framing& into) noexcept {
    gathered all = gather(fields, text);
    into = {};
    const bool tunnel = method == "CONNECT" && code / 100 == 2;
    const bool no_body = method == "HEAD" || code / 100 == 1 || code == 204 || code == 304;
    if (no_body || tunnel) {
        all.coding_count = all.length_count = 0;
        all.close = all.close || tunnel;
    }
    if (const unsigned refused = take_common(version, all, into); refused != 0) return refused;

    if (!no_body && !tunnel && into.kind == framing::kind::none) {
        into.kind = framing::kind::until_close;
        into.keep_alive = false;
    }
    return 0;
}

bool forbidden_in_trailers(std::string_view name) noexcept {
    using namespace std::string_view_literals;
    static constexpr std::array names{
        // framing, and the connection
        "content-length"sv, "transfer-encoding"sv, "trailer"sv, "connection"sv, "keep-alive"sv,
        "proxy-connection"sv, "te"sv, "upgrade"sv,
        // routing, and how to process the message
        "host"sv, "expect"sv, "max-forwards"sv, "cache-control"sv, "pragma"sv, "range"sv,
        "if-match"sv, "if-none-match"sv, "if-modified-since"sv, "if-unmodified-since"sv,
        "if-range"sv,
        // authentication
        "authorization"sv, "proxy-authorization"sv, "proxy-authenticate"sv, "www-authenticate"sv,
        "cookie"sv, "set-cookie"sv,
        // the form of the content
        "content-encoding"sv, "content-type"sv, "content-range"sv};
    return std::ranges::any_of(names,
                               [name](std::string_view each) { return iequals(each, name); });
}

} // namespace simplenet::v0::http::detail
