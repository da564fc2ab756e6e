#include "http/files/listing.hpp"

#include "http/codec/utf8.hpp"
#include "sys/file_calls.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dirent.h>
#include <sys/stat.h>

namespace simplenet::v0::http::detail {

namespace sys = simplenet::detail::sys;

namespace {

struct listed {
    std::string name;
    bool directory;
    std::uint64_t size;
    std::time_t modified;

    friend bool operator<(const listed& left, const listed& right) noexcept {
        return std::tie(right.directory, left.name) < std::tie(left.directory, right.name);
    }
};

/// Text between tags, or in a quoted attribute.
void append_text(std::string& page, std::string_view text) {
    const bool is_text = is_utf8(text);
    for (const char each : text) {
        switch (each) {
        case '&':
            page += "&amp;";
            break;
        case '<':
            page += "&lt;";
            break;
        case '>':
            page += "&gt;";
            break;
        case '"':
            page += "&quot;";
            break;
        case '\'':
            page += "&#39;";
            break;
        default:
            // Control characters are not allowed in HTML, nor what is not UTF-8.
            const auto byte = static_cast<unsigned char>(each);
            if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text)) {
                page += "&#xfffd;";
            } else {
                page += each;
            }
        }
    }
}

/// One part of a path (RFC 3986, section 3.3): everything but unreserved characters is encoded.
void append_encoded(std::string& page, std::string_view name) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    for (const char each : name) {
        const auto byte = static_cast<unsigned char>(each);
        const bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
        if (letter || (byte >= '0' && byte <= '9') || each == '-' || each == '.' || each == '_' ||
            each == '~') {
            page += each;
        } else {
            page += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
}

void append_date(std::string& page, std::time_t time) {
    using namespace std::chrono;
    // Years with four digits.
    const sys_seconds at{seconds{std::clamp<std::time_t>(time, 0, 253'402'300'799)}};
    const auto day = floor<days>(at);
    const year_month_day date{day};
    const hh_mm_ss hour{at - day};
    char text[24];
    const int size = std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d",
                                   static_cast<int>(date.year()), unsigned{date.month()},
                                   unsigned{date.day()}, static_cast<int>(hour.hours().count()),
                                   static_cast<int>(hour.minutes().count()));
    page.append(text, static_cast<std::size_t>(size));
}

void append_row(std::string& page, const listed& entry) {
    const std::string_view slash = entry.directory ? "/" : "";
    // Without the `./`, the first part of a relative reference could be taken for a scheme.
    page += "<tr><td><a href=\"./";
    append_encoded(page, entry.name);
    page.append(slash).append("\">");
    append_text(page, entry.name);
    page.append(slash).append("</a></td><td>");
    if (!entry.directory) page += std::to_string(entry.size);
    page += "</td><td>";
    append_date(page, entry.modified);
    page += "</td></tr>\n";
}

std::string page_of(const std::vector<listed>& entries, bool cut, const listing_options& options) {
    std::string page;
    page += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>";
    append_text(page, options.title);
    page += "</title>\n</head>\n<body>\n<h1>";
    append_text(page, options.title);
    page += "</h1>\n<table>\n<thead><tr><th>Name</th><th>Size</th><th>Modified (UTC)</th></tr>"
            "</thead>\n<tbody>\n";
    if (options.parent) page += "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n";
    for (const listed& each : entries)
        append_row(page, each);
    page += "</tbody>\n</table>\n";
    if (cut) {
        page.append("<p>There are more than these ")
            .append(std::to_string(entries.size()))
            .append(" entries.</p>\n");
    }
    page += "</body>\n</html>\n";
    return page;
}

/// Reads the names of a directory, one after the other.
class directory_reader {
public:
    explicit directory_reader(int fd) noexcept
        : fd_{fd} {}

    /// Without a value: the end.
    result<const char*> next() noexcept {
        if (at_ == end_) {
            const ssize_t read = sys::getdents(fd_, buffer_.data(), buffer_.size());
            if (read < 0) return sys::fail_with(read);
            if (read == 0) return nullptr;
            at_ = 0;
            end_ = static_cast<std::size_t>(read);
        }
        // The kernel aligns its records.
        const auto* const entry =
            reinterpret_cast<const dirent64*>(static_cast<const void*>(buffer_.data() + at_));
        at_ += entry->d_reclen;
        return entry->d_name;
    }

private:
    int fd_;
    std::size_t at_ = 0;
    std::size_t end_ = 0;
    alignas(dirent64) std::array<char, 32 * 1024> buffer_;
};

/// What a request for the entry would find. Nothing: it would be refused, or is gone.
result<std::optional<listed>> look_at(int root, std::string_view path, int directory,
                                      const char* name, const listing_options& options) {
    const auto as_listed = [name](const struct stat& status) {
        return listed{.name = name,
                      .directory = S_ISDIR(status.st_mode),
                      .size = static_cast<std::uint64_t>(status.st_size),
                      .modified = status.st_mtim.tv_sec};
    };
    const auto left_out = [](std::error_code error) -> result<std::optional<listed>> {
        if (is_missing(error) || error == std::errc::permission_denied) return std::nullopt;
        return fail(error);
    };
    struct stat status{};
    if (const int looked = sys::lstatat(directory, name, status); looked < 0) {
        return left_out(sys::fail_with(looked).error());
    }
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return as_listed(status);
    if (!S_ISLNK(status.st_mode) || options.rules.follow == symlinks::never) return std::nullopt;

    std::string whole{path};
    if (!whole.empty()) whole += '/';
    const auto found = open_beneath(root, whole.append(name), access::look, options.rules);
    if (!found) return left_out(found.error());
    return as_listed(found->status);
}

bool is_shown(const char* name, open_rules rules) noexcept {
    const std::string_view text{name};
    if (text == "." || text == "..") return false;
    return (rules.hidden || !text.starts_with('.')) && is_relative_path(text);
}

result<std::string> page_for(int root, std::string_view path, const listing_options& options) {
    const auto directory = open_beneath(root, path, access::read, options.rules);
    if (!directory) return fail(directory);
    if (!directory->is_directory()) return fail(std::errc::not_a_directory);

    const auto names = std::make_unique<directory_reader>(directory->fd.get());
    std::vector<listed> entries;
    bool cut = false;
    for (;;) {
        const auto name = names->next();
        if (!name) return fail(name);
        if (*name == nullptr) break;
        if (!is_shown(*name, options.rules)) continue;
        auto entry = look_at(root, path, directory->fd.get(), *name, options);
        if (!entry) return fail(entry);
        if (!*entry) continue;
        cut = entries.size() == options.most;
        if (cut) break;
        entries.push_back(**std::move(entry));
    }
    std::ranges::sort(entries, std::less<>{});
    return page_of(entries, cut, options);
}

} // namespace

result<std::string> list_directory(int root, std::string_view path,
                                   const listing_options& options) noexcept {
    try {
        return page_for(root, path, options);
    } catch (const std::bad_alloc&) {
        return fail(std::errc::not_enough_memory);
    }
}

} // namespace simplenet::v0::http::detail
