#include "http/proxy/request_head.hpp"

#include "http/codec/list.hpp"
#include "http/codec/target.hpp"
#include "http/codec/uri_characters.hpp"
#include "http/gateway/field_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>

namespace simplenet::v0::http::detail {

namespace {

// --- the target ----------------------------------------------------------------------------------

/// Whether a byte means the same encoded and not (RFC 3986, section 2.3).
[[nodiscard]] bool is_unreserved(char byte) noexcept {
    return ascii::is_digit(byte) || (to_lower(byte) >= 'a' && to_lower(byte) <= 'z') ||
           byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

void append_encoded(std::string& to, char byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto value = static_cast<unsigned char>(byte);
    to += '%';
    to += digits[value >> 4U];
    to += digits[value & 15U];
}

/// Appends one segment of a valid path in its canonical form.
void append_segment(std::string& to, std::string_view raw) {
    const std::size_t begin = to.size();
    for (std::size_t at = 0; at < raw.size(); ++at) {
        char byte = raw[at];
        bool is_encoded = false;
        if (byte == '%') {
            const int decoded = uri::encoded_byte(raw, at);
            if (decoded >= 0) {
                byte = static_cast<char>(decoded);
                is_encoded = true;
                at += 2;
            }
        }
        if (is_unreserved(byte) || (!is_encoded && uri::is(uri::path, byte))) {
            to += byte;
        } else {
            append_encoded(to, byte);
        }
    }
    const std::string_view written = std::string_view{to}.substr(begin);
    const std::size_t semicolon = written.find(';');
    if (semicolon > 2) return;
    const std::string_view name = written.substr(0, semicolon);
    if (name.empty() || name == "." || name == "..") to.replace(begin + semicolon, 1, "%3B");
}

/// Appends a path without its dot segments and empty segments, as normalise_path() drops them.
void append_path(std::string& to, std::string_view raw) {
    const std::size_t begin = to.size();
    to += '/';
    while (!raw.empty()) {
        raw.remove_prefix(1); // a slash
        const std::size_t size = std::min(raw.find('/'), raw.size());
        const std::size_t end = to.size();
        append_segment(to, raw.substr(0, size));
        const std::string_view written = std::string_view{to}.substr(end);
        raw.remove_prefix(size);
        if (written.empty() || written == ".") {
            to.resize(end);
        } else if (written == "..") {
            to.resize(end);
            if (end - begin > 1) to.resize(to.rfind('/', end - 2) + 1);
        } else if (!raw.empty()) {
            to += '/';
        }
    }
}

[[nodiscard]] bool is_sent_as_it_is(std::string_view path) noexcept {
    return std::ranges::all_of(path,
                               [](char each) { return uri::is(uri::path, each) && each != ';'; });
}

/// Whether what was written of a path leads to `path`.
[[nodiscard]] bool leads_to(std::string_view written, std::string_view path) {
    std::string normalised(written.size(), '\0');
    const auto size = normalise_path(written, normalised.data());
    return size && std::string_view{normalised}.substr(0, *size) == path;
}

void append_target(std::string& to, std::string_view method, std::string_view path,
                   std::string_view target) {
    std::string_view raw = target.substr(0, target.find('?'));
    if (path == "*") {
        to += '*';
        return;
    }
    if (raw == path && is_sent_as_it_is(path)) { // nearly always
        to += target;
        return;
    }
    const auto parts = parse_target(method, target);
    raw = parts ? parts->path : std::string_view{};
    const std::size_t begin = to.size();
    if (raw.starts_with('/')) append_path(to, raw);
    // Else the program has chosen another path.
    if (!leads_to(std::string_view{to}.substr(begin), path)) {
        to.resize(begin);
        append_path(to, percent_encode_path(path));
    }
    if (parts && parts->has_query) to.append("?").append(parts->query);
}

// --- the fields ----------------------------------------------------------------------------------

void append_field(std::string& to, std::string_view name, std::string_view value) {
    to.append(name).append(": ").append(value).append("\r\n");
}

void append_number(std::string& to, std::uint64_t number) {
    std::array<char, 20> digits;
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    to.append(digits.data(), end);
}

/// The number that stands in Max-Forwards; a larger one than fits is the largest.
[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
    if (text.empty()) return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end != text.data() + text.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) return std::numeric_limits<std::uint64_t>::max();
    return error == std::errc{} ? std::optional{number} : std::nullopt;
}

[[nodiscard]] bool limits_forwards(std::string_view method) noexcept {
    return method == "TRACE" || method == "OPTIONS";
}

/// Without a scope, which means nothing to another machine.
[[nodiscard]] std::string text_of(const ip_address& address) {
    std::string text = address.unmapped().to_string();
    if (const std::size_t scope = text.find('%'); scope != std::string::npos) text.resize(scope);
    return text;
}

/// A host or an address: a token, or else a quoted-string (RFC 7239, section 4).
void append_value(std::string& to, std::string_view value) {
    if (is_token(value)) {
        to += value;
        return;
    }
    // Neither a quotation mark nor a backslash can stand in a host (RFC 3986, section 3.2.2).
    to.append("\"").append(value).append("\"");
}

/// An address as a node of Forwarded (RFC 7239, section 6).
void append_node(std::string& to, std::string_view address) {
    to.append("for=");
    if (!address.contains(':')) return append_value(to, address);
    to.append("\"[").append(address).append("]\"");
}

/// A list that was received, perhaps in several fields.
class received_list {
public:
    explicit received_list(std::string_view name) noexcept
        : name_{name} {}

    void add(std::string_view value) {
        if (value.empty()) return;
        if (!text_.empty()) text_ += ", ";
        text_ += value;
    }
    void clear() noexcept { text_.clear(); }
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    /// Begins the field, with what was received; the new last element follows.
    void begin(std::string& to) const {
        to.append(name_).append(": ");
        if (!text_.empty()) to.append(text_).append(", ");
    }

private:
    std::string_view name_;
    std::string text_;
};

/// Writes the fields that are not only passed on.
class field_writer {
public:
    field_writer(std::string& to, const passed_request& asked, const head_rules& rules)
        : to_{to}
        , asked_{asked}
        , rules_{rules}
        , named_{*asked.fields} {}

    void pass_on() {
        for (const field each : *asked_.fields)
            take(each);
    }
    void add_own() {
        if (!rules_.via.empty()) {
            via_.begin(to_);
            to_.append(asked_.version == 10 ? "1.0 " : "1.1 ").append(rules_.via).append("\r\n");
        }
        const std::string peer = text_of(asked_.peer);
        const std::string_view scheme = asked_.secure ? "https" : "http";
        if (!is_forwarded_clear_) forwarded_.clear();
        if (asked_.client_is_told && asked_.client != asked_.peer) begin_with_client();
        forwarded_.begin(to_);
        append_node(to_, peer);
        if (!asked_.host.empty()) {
            to_.append(";host=");
            append_value(to_, asked_.host);
        }
        to_.append(";proto=").append(scheme).append("\r\n");
        forwarded_for_.begin(to_);
        to_.append(peer).append("\r\n");
        if (!has_real_ip_) {
            const bool is_peer = asked_.client == asked_.peer;
            append_field(to_, "X-Real-IP", is_peer ? peer : text_of(asked_.client));
        }
        if (!has_proto_) append_field(to_, "X-Forwarded-Proto", scheme);
        if (!has_host_ && !asked_.host.empty()) {
            append_field(to_, "X-Forwarded-Host", asked_.host);
        }
    }

private:
    // A proxy tells its client in one of the fields; backends look at another.
    void begin_with_client() {
        const std::string client = text_of(asked_.client);
        if (forwarded_.empty()) {
            std::string node;
            append_node(node, client);
            forwarded_.add(node);
        }
        if (forwarded_for_.empty()) forwarded_for_.add(client);
    }
    void take(const field& each) {
        const bool has_underscore = each.name.contains('_');
        if (has_underscore &&
            (!rules_.underscores || kind_of_folded_field(each.name) != field_kind::ordinary)) {
            return;
        }
        const field_kind kind = kind_of_field(each.name);
        if (tells_client(kind)) {
            if (asked_.trusted) take_from_trusted(each, kind);
            return;
        }
        switch (kind) {
        case field_kind::ordinary:
            if (!named_.has(each.name) && !is_set(each.name)) append(each);
            break;
        case field_kind::kept:
            if (!is_set(each.name)) append(each);
            break;
        case field_kind::via:
            via_.add(each.value);
            break;
        case field_kind::max_forwards:
            pass_forwards(each);
            break;
        default:
            break;
        }
    }
    void take_from_trusted(const field& each, field_kind kind) {
        switch (kind) {
        case field_kind::forwarded:
            is_forwarded_clear_ = is_forwarded_clear_ && has_clear_elements(each.value);
            return forwarded_.add(each.value);
        case field_kind::forwarded_for:
            return forwarded_for_.add(each.value);
        case field_kind::real_ip:
            // It may be from the client of a proxy that only sets X-Forwarded-For. Backends take it
            // for the one true address, which is known if the program has told the client.
            if (asked_.client_is_told) return;
            has_real_ip_ = true;
            break;
        case field_kind::proto:
            has_proto_ = true;
            break;
        case field_kind::forwarded_host:
            has_host_ = true;
            break;
        default:
            break;
        }
        append(each);
    }
    void pass_forwards(const field& each) {
        const auto left = number_of(each.value);
        if (!limits_forwards(asked_.method)) return append(each);
        if (!left || *left == 0) return; // was judged before
        to_.append("Max-Forwards: ");
        append_number(to_, *left - 1);
        to_.append("\r\n");
    }
    void append(const field& each) { append_field(to_, each.name, each.value); }
    [[nodiscard]] bool is_set(std::string_view name) const noexcept {
        return std::ranges::any_of(
            rules_.set, [name](const field& each) { return equals_folded(each.name, name); });
    }

    std::string& to_;
    const passed_request& asked_;
    const head_rules& rules_;
    const named_fields named_;
    received_list via_{"Via"};
    received_list forwarded_{"Forwarded"};
    received_list forwarded_for_{"X-Forwarded-For"};
    bool is_forwarded_clear_ = true;
    bool has_real_ip_ = false;
    bool has_proto_ = false;
    bool has_host_ = false;
};

} // namespace

named_fields::named_fields(const http::fields& of) noexcept
    : fields_{of} {
    for (const field each : of) {
        if (!iequals(each.name, "Connection")) continue;
        // Nearly always it says this, and no field has that name.
        if (!iequals(each.value, "keep-alive") && !iequals(each.value, "close")) any_ = true;
    }
}

bool named_fields::has(std::string_view name) const noexcept {
    if (!any_) return false;
    return std::ranges::any_of(fields_, [name](const field& each) {
        if (!iequals(each.name, "Connection")) return false;
        bool found = false;
        static_cast<void>(for_each_element(each.value, [&](std::string_view option) {
            found = found || iequals(option, name);
            return true;
        }));
        return found;
    });
}

forwards judge_forwards(std::string_view method, const http::fields& fields) noexcept {
    if (!limits_forwards(method)) return forwards::allowed;
    forwards verdict = forwards::allowed;
    unsigned count = 0;
    for (const field each : fields) {
        if (!iequals(each.name, "Max-Forwards")) continue;
        const auto left = number_of(each.value);
        if (!left || ++count > 1) return forwards::malformed;
        if (*left == 0) verdict = forwards::exhausted;
    }
    return verdict;
}

std::string backend_target(std::string_view method, std::string_view path,
                           std::string_view target) {
    std::string text;
    append_target(text, method, path, target);
    return text;
}

std::string write_request_head(const passed_request& asked, const head_rules& rules,
                               std::string_view fallback_host) {
    std::string head;
    head.reserve(1024);
    head.append(asked.method).append(" ");
    append_target(head, asked.method, asked.path, asked.target);
    std::string_view host = rules.host.empty() ? asked.host : std::string_view{rules.host};
    if (host.empty()) host = fallback_host;
    head.append(" HTTP/1.1\r\n");
    append_field(head, "Host", host);
    field_writer fields{head, asked, rules};
    fields.pass_on();
    fields.add_own();
    for (const field each : rules.set)
        append_field(head, each.name, each.value);
    if (asked.has_body && !asked.length) {
        append_field(head, "Transfer-Encoding", "chunked");
    } else if (asked.has_body) {
        head.append("Content-Length: ");
        append_number(head, *asked.length);
        head.append("\r\n");
    }
    if (asked.upgrades) head.append("Connection: Upgrade\r\nUpgrade: websocket\r\n");
    head.append("\r\n");
    return head;
}

} // namespace simplenet::v0::http::detail
