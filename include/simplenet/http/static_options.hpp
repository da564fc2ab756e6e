#pragma once
// static_options: how router::files() serves a directory. Layer http.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Which symbolic links are followed between the root and a file.
enum class symlinks : std::uint8_t {
    /// Those that lead to something beneath the root by a relative target. A link with an absolute
    /// target, or one that passes through a directory above the root, counts as a missing file.
    beneath,
    /// None: a path with a symbolic link in it counts as a missing file.
    never,
};

/// The default of static_options::index.
inline constexpr std::string_view default_index[]{"index.html"};

/// How the files of a directory are served. Nothing outside of the directory is, whatever these
/// options say. All texts are copied by router::files().
///
/// The directory itself is opened once, and served even if its name later means another one: a
/// program that switches between directories replaces its router.
///
/// Each loop has a cache of its own; the limits of the cache are those of one loop.
struct static_options {
    /// The names of the file that is the answer for a directory; the first one that exists is used.
    std::span<const std::string_view> index = default_index;
    /// Whether a directory without such a file is answered with a list of its entries. Otherwise
    /// the answer is 404.
    ///
    /// Each loop makes one list at a time, however many directories are asked for. Clients take
    /// turns, by address (IPv6: its first 64 bits); one whose turn comes gets the list that was
    /// made for another meanwhile. If none came within ten seconds, the answer is 503. The newest
    /// lists are kept, up to 4 MiB of them.
    bool listing = false;
    symlinks follow = symlinks::beneath;
    /// Whether names that begin with a dot are served. Otherwise they count as missing, in every
    /// part of the path except for a `.well-known` at its beginning (RFC 8615).
    bool hidden = false;
    /// Whether `name.br` or `name.gz` is sent instead of `name` to clients that accept the coding.
    /// The compressed file must be a regular file and no older than `name`.
    bool precompressed = true;
    /// The value of the field Cache-Control, if not empty.
    std::string_view cache_control{};

    /// The number of files that are kept open or in memory between requests. The least recently
    /// used one is dropped. 0: every request opens its file again.
    std::size_t max_open = 1000;
    /// Bytes. Files up to this size are kept in memory instead of open. 0: none.
    std::size_t small_file = std::size_t{16} << 10;
    /// Bytes that small files may take in all.
    std::size_t small_total = std::size_t{8} << 20;
    /// What is known about a path is used for this long; then the path is looked up again before
    /// the next use. A change becomes visible no later than this, and never in the middle of an
    /// answer. 0: every request looks.
    std::chrono::nanoseconds revalidate_after = std::chrono::seconds{1};
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
