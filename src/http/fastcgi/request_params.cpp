#include "http/fastcgi/request_params.hpp"

#include "http/codec/list.hpp"
#include "http/codec/scan.hpp"
#include "http/gateway/field_rules.hpp"
#include "http/server/exchange.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::size_t first_block = std::size_t{16} * 1024;

/// Writes variables behind each other.
class param_writer {
public:
    explicit param_writer(growing_bytes& into) noexcept
        : into_{into} {}

    /// With a value that may have two parts.
    // Inlined, its twenty calls would be 6 KB of instructions, a fifth of the first cache.
    [[gnu::noinline]] void add(std::string_view name, std::string_view first,
                               std::string_view second = {}) {
        const std::size_t size = first.size() + second.size();
        char* const begin = begin_param(name.size(), size);
        char* const at = put(fastcgi::write_param_lengths(begin, name.size(), size), name);
        end_param(begin, put(put(at, first), second));
    }
    [[gnu::noinline]] void add(std::string_view name, std::uint64_t number) {
        std::array<char, 20> text;
        char* const end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
        add(name, {text.data(), static_cast<std::size_t>(end - text.data())});
    }
    /// The name of a field as that of a variable; the values of all fields with this name, from
    /// `first` on.
    void add_field(const fields& all, fields::iterator first);

private:
    [[nodiscard]] static char* put(char* to, std::string_view text) noexcept {
        if (!text.empty()) std::memcpy(to, text.data(), text.size());
        return to + text.size();
    }
    [[nodiscard]] char* begin_param(std::size_t name, std::size_t value) {
        return into_.room(fastcgi::param_size(name, value));
    }
    void end_param(const char* begin, const char* end) noexcept {
        into_.took(static_cast<std::size_t>(end - begin));
    }

    growing_bytes& into_;
};

/// Letters, digits and hyphens. Any other character of a token would come out like one of these:
/// `_` in the name of the variable, and `.` in PHP. So a client could send a field that a proxy
/// before this server takes for another one than the script does.
[[nodiscard]] bool has_plain_name(std::string_view name) noexcept {
    return std::ranges::all_of(name, [](char each) {
        const char lower = to_lower(each);
        return (lower >= 'a' && lower <= 'z') || (each >= '0' && each <= '9') || each == '-';
    });
}

/// Fields that have a variable of another name, concern the connection, or must not become one.
[[nodiscard]] bool is_left_out(std::string_view name, field_kind kind) noexcept {
    switch (kind) {
    case field_kind::hop_by_hop:
    case field_kind::connection:
    case field_kind::content:
    case field_kind::host:
    case field_kind::expect:
    case field_kind::proxy:
        return true;
    default:
        return iequals(name, "Content-Type");
    }
}

/// Whether a field before `at` has its name.
[[nodiscard]] bool is_repeated(const fields& all, fields::iterator at) noexcept {
    const std::string_view name = (*at).name;
    return std::any_of(all.begin(), at,
                       [name](const field& other) { return iequals(other.name, name); });
}

void param_writer::add_field(const fields& all, fields::iterator first) {
    const auto [name, first_value] = *first;
    const auto is_same = [name](const field& other) { return iequals(other.name, name); };
    const std::string_view between = iequals(name, "Cookie") ? "; " : ", ";
    std::size_t size = first_value.size();
    for (auto each = std::next(first); each != all.end(); ++each)
        if (is_same(*each)) size += between.size() + (*each).value.size();
    constexpr std::string_view prefix = "HTTP_";
    char* const begin = begin_param(prefix.size() + name.size(), size);
    char* at = fastcgi::write_param_lengths(begin, prefix.size() + name.size(), size);
    at = put(at, prefix);
    for (const char each : name) {
        const bool is_lower = each >= 'a' && each <= 'z';
        *at++ = is_lower ? static_cast<char>(each - ('a' - 'A')) : each == '-' ? '_' : each;
    }
    at = put(at, first_value);
    for (auto each = std::next(first); each != all.end(); ++each)
        if (is_same(*each)) at = put(put(at, between), (*each).value);
    end_param(begin, at);
}

void write_address(param_writer& to, std::string_view name, const endpoint& from) {
    to.add(name, from.address().to_string());
}

[[nodiscard]] bool is_clear_forwarded(const fields& all) {
    return std::ranges::all_of(all.all("Forwarded"), has_clear_elements);
}

void write_fields(const fastcgi_settings& with, const request& asked, param_writer& to) {
    const bool is_trusted =
        !with.trusted.empty() && with.trusted.contains(asked.connection_peer().address());
    const bool is_told = exchange::of(asked).is_peer_told();
    if (!asked.host().empty()) to.add("HTTP_HOST", asked.host());
    const fields& all = asked.fields();
    for (auto each = all.begin(); each != all.end(); ++each) {
        const std::string_view name = (*each).name;
        const field_kind kind = kind_of_field(name);
        if (is_left_out(name, kind) || !has_plain_name(name)) continue;
        if (!is_trusted && tells_client(kind)) continue;
        if (is_repeated(all, each)) continue; // joined already
        if (kind == field_kind::forwarded && !is_clear_forwarded(all)) continue;
        // The address of REMOTE_ADDR, if the program has told a client: a proxy that only sets
        // X-Forwarded-For passes on the X-Real-IP of its client, and scripts take it for the one
        // true address.
        if (kind == field_kind::real_ip && is_told) {
            write_address(to, "HTTP_X_REAL_IP", asked.peer());
            continue;
        }
        to.add_field(all, each);
    }
}

/// The target as most clients write it: applications route by it, and take `https://h/x` for a
/// path.
void write_target(param_writer& to, std::string_view target) {
    const std::size_t scheme = target.find("://");
    if (!target.starts_with('/') && scheme != std::string_view::npos) {
        target.remove_prefix(std::min(target.find_first_of("/?", scheme + 3), target.size()));
        if (!target.starts_with('/')) return to.add("REQUEST_URI", "/", target);
    }
    to.add("REQUEST_URI", target);
}

void write_variables(const fastcgi_settings& with, const request& asked, const script_path& path,
                     std::optional<std::uint64_t> body, param_writer& to) {
    to.add("REQUEST_METHOD", asked.method());
    to.add("QUERY_STRING", asked.query());
    write_target(to, asked.target());
    to.add("SCRIPT_NAME", path.script);
    to.add("DOCUMENT_URI", path.script, path.info);
    if (with.has_scripts()) to.add("SCRIPT_FILENAME", with.document_root, path.script);
    if (!path.info.empty()) {
        to.add("PATH_INFO", path.info);
        if (with.has_scripts()) to.add("PATH_TRANSLATED", with.document_root, path.info);
    }
    if (body) to.add("CONTENT_LENGTH", *body);
    if (const auto type = asked.fields().find("Content-Type")) to.add("CONTENT_TYPE", *type);
    to.add("SERVER_PROTOCOL", asked.version() == 10 ? "HTTP/1.0" : "HTTP/1.1");
    const endpoint peer = asked.peer();
    write_address(to, "REMOTE_ADDR", peer);
    to.add("REMOTE_PORT", peer.port());
    if (!asked.user().empty()) to.add("REMOTE_USER", asked.user());
    const endpoint local = asked.connection_local();
    write_address(to, "SERVER_ADDR", local);
    to.add("SERVER_PORT", local.port());
    if (with.server_name.empty()) write_address(to, "SERVER_NAME", local);
    if (asked.secure()) {
        to.add("HTTPS", "on");
        to.add("REQUEST_SCHEME", "https");
    } else {
        to.add("REQUEST_SCHEME", "http");
    }
    write_fields(with, asked, to);
}

} // namespace

void growing_bytes::append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(room(text.size()), text.data(), text.size());
    took(text.size());
}

void growing_bytes::grow(std::size_t count) {
    scratch larger = scratch::borrow(std::max({first_block, 2 * memory_.size(), size_ + count}));
    if (size_ != 0) std::memcpy(larger.data(), memory_.data(), size_);
    memory_ = std::move(larger);
}

void write_request(const fastcgi_settings& with, const request& asked, const script_path& path,
                   std::optional<std::uint64_t> body, growing_bytes& into) {
    using fastcgi::header_size;
    using fastcgi::record_type;
    const auto begin = fastcgi::begin_request(with.options.keep_connections != 0);
    into.append({begin.data(), begin.size()});
    const std::size_t header_at = into.size();
    static_cast<void>(into.room(header_size));
    into.took(header_size);
    const std::size_t params_at = into.size();
    into.append(with.first_params);
    param_writer to{into};
    write_variables(with, asked, path, body, to);
    into.append(with.last_params);
    // Nearly always all of them fit into one record. Otherwise the bytes move apart for the
    // headers of further ones, from the back to the front.
    const std::size_t size = into.size() - params_at;
    const std::size_t more = (size - 1) / fastcgi::most_content;
    static_cast<void>(into.room((more + 1) * header_size));
    into.took((more + 1) * header_size);
    char* const params = into.data() + params_at;
    for (std::size_t each = more; each != 0; --each) {
        const std::size_t from = each * fastcgi::most_content;
        const std::size_t count = std::min(fastcgi::most_content, size - from);
        std::memmove(params + from + each * header_size, params + from, count);
        fastcgi::write_header(params + from + (each - 1) * header_size, record_type::params, count);
    }
    fastcgi::write_header(into.data() + header_at, record_type::params,
                          std::min(size, fastcgi::most_content));
    fastcgi::write_header(params + size + more * header_size, record_type::params, 0);
}

} // namespace simplenet::v0::http::detail
