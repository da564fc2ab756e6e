#include "http/files/media_types.hpp"

#include "http/codec/list.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::string_view unknown_type = "application/octet-stream";
constexpr std::size_t longest_extension = 32;
/// Bytes. Debian's file has 72 KiB.
constexpr std::size_t most_of_mime_types = 1024 * 1024;

using known_type = std::pair<std::string_view, std::string_view>;

// The registered types (IANA), and for icons and source maps those in use.
constexpr std::array known_types{
    known_type{"html", "text/html"},
    known_type{"htm", "text/html"},
    known_type{"xhtml", "application/xhtml+xml"},
    known_type{"css", "text/css"},
    known_type{"js", "text/javascript"}, // RFC 9239
    known_type{"mjs", "text/javascript"},
    known_type{"json", "application/json"},
    known_type{"map", "application/json"},
    known_type{"jsonld", "application/ld+json"},
    known_type{"webmanifest", "application/manifest+json"},
    known_type{"wasm", "application/wasm"},
    known_type{"txt", "text/plain"},
    known_type{"text", "text/plain"},
    known_type{"log", "text/plain"},
    known_type{"md", "text/markdown"},
    known_type{"csv", "text/csv"},
    known_type{"ics", "text/calendar"},
    known_type{"vcf", "text/vcard"},
    known_type{"vtt", "text/vtt"},
    known_type{"xml", "application/xml"},
    known_type{"xsl", "application/xslt+xml"},
    known_type{"rss", "application/rss+xml"},
    known_type{"atom", "application/atom+xml"},
    known_type{"yaml", "application/yaml"}, // RFC 9512
    known_type{"yml", "application/yaml"},
    known_type{"png", "image/png"},
    known_type{"jpg", "image/jpeg"},
    known_type{"jpeg", "image/jpeg"},
    known_type{"gif", "image/gif"},
    known_type{"webp", "image/webp"},
    known_type{"avif", "image/avif"},
    known_type{"svg", "image/svg+xml"},
    known_type{"ico", "image/x-icon"},
    known_type{"bmp", "image/bmp"},
    known_type{"tif", "image/tiff"},
    known_type{"tiff", "image/tiff"},
    known_type{"woff", "font/woff"},
    known_type{"woff2", "font/woff2"},
    known_type{"ttf", "font/ttf"},
    known_type{"otf", "font/otf"},
    known_type{"mp3", "audio/mpeg"},
    known_type{"m4a", "audio/mp4"},
    known_type{"aac", "audio/aac"},
    known_type{"oga", "audio/ogg"},
    known_type{"ogg", "audio/ogg"},
    known_type{"opus", "audio/ogg"},
    known_type{"flac", "audio/flac"},
    known_type{"wav", "audio/x-wav"},
    known_type{"mp4", "video/mp4"},
    known_type{"m4v", "video/mp4"},
    known_type{"webm", "video/webm"},
    known_type{"ogv", "video/ogg"},
    known_type{"mov", "video/quicktime"},
    known_type{"mpeg", "video/mpeg"},
    known_type{"m3u8", "application/vnd.apple.mpegurl"},
    known_type{"pdf", "application/pdf"},
    known_type{"epub", "application/epub+zip"},
    known_type{"zip", "application/zip"},
    known_type{"gz", "application/gzip"},
    known_type{"tgz", "application/gzip"},
    known_type{"tar", "application/x-tar"},
    known_type{"bz2", "application/x-bzip2"},
    known_type{"xz", "application/x-xz"},
    known_type{"zst", "application/zstd"},
    known_type{"7z", "application/x-7z-compressed"},
};

constexpr std::string_view blanks = " \t\r";

/// The next word of a line; empty at its end.
std::string_view take_word(std::string_view& line) noexcept {
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

bool is_media_type(std::string_view text) noexcept {
    const std::size_t slash = text.find('/');
    return slash != std::string_view::npos && is_token(text.substr(0, slash)) &&
           is_token(text.substr(slash + 1));
}

/// Empty if it cannot be read.
std::string read_mime_types(const char* path) {
    std::ifstream file{path, std::ios::binary};
    std::string text(most_of_mime_types, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

} // namespace

media_type_table::media_type_table(std::string_view mime_types) {
    for (const auto& [extension, type] : known_types)
        add(extension, type);
    while (!mime_types.empty()) {
        const std::string_view line = mime_types.substr(0, mime_types.find('\n'));
        mime_types.remove_prefix(std::min(line.size() + 1, mime_types.size()));
        read_line(line.substr(0, line.find('#')));
    }
}

void media_type_table::read_line(std::string_view line) {
    const std::string_view type = take_word(line);
    if (!is_media_type(type)) return;
    for (std::string_view extension = take_word(line); !extension.empty();
         extension = take_word(line)) {
        add(extension, type);
    }
}

void media_type_table::add(std::string_view extension, std::string_view type) {
    if (extension.empty() || extension.size() > longest_extension) return;
    std::string key{extension};
    std::ranges::transform(key, key.begin(), to_lower);
    std::string value{type};
    if (type.starts_with("text/")) value += "; charset=utf-8";
    types_.try_emplace(std::move(key), std::move(value));
}

std::string_view media_type_table::find(std::string_view extension) const noexcept {
    if (extension.size() > longest_extension) return {};
    std::array<char, longest_extension> lower{};
    std::ranges::transform(extension, lower.begin(), to_lower);
    const auto found = types_.find(std::string_view{lower.data(), extension.size()});
    return found == types_.end() ? std::string_view{} : std::string_view{found->second};
}

std::string_view media_type_of(std::string_view name) {
    // Never destroyed: loops of other threads may still serve while the program ends.
    static const auto& system = *new media_type_table{read_mime_types("/etc/mime.types")};
    name.remove_prefix(name.rfind('/') + 1); // none: npos + 1 is 0
    const std::size_t dot = name.rfind('.');
    if (dot == 0 || dot == std::string_view::npos) return unknown_type;
    const std::string_view type = system.find(name.substr(dot + 1));
    return type.empty() ? unknown_type : type;
}

} // namespace simplenet::v0::http::detail
