#pragma once
// file_cache: what the files of a root are, and the open files themselves. Layer http, private.
// One cache for each loop and root; responses take files from it.

#include "http/files/open_beneath.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/static_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ctime>
#include <sys/stat.h>
#include <sys/types.h>

namespace simplenet::v0::http::detail {

/// Distinguishes one state of a file from all others: whatever changes the contents sets `changed`,
/// and no program can set it to a time of its choice.
struct file_state {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t size = 0;
    timespec written{}; // st_mtim
    timespec changed{}; // st_ctim

    [[nodiscard]] static file_state of(const struct stat& status) noexcept;
    friend bool operator==(const file_state& left, const file_state& right) noexcept;
};

/// One representation of a file: a descriptor or the contents, and the validators that go with it.
/// Immutable.
struct open_file {
    /// For sendfile(2) and pread(2) at explicit offsets: the descriptor's own offset is shared.
    /// None if the contents are in memory.
    unique_fd fd;
    bool in_memory = false;
    std::string contents; // if in_memory
    /// The size when the file was opened. A file that another process truncates later has fewer
    /// bytes, and an answer that promised more must be aborted.
    std::uint64_t size = 0;
    /// For Last-Modified: seconds since 1970, at most the time of the lookup, so never later than
    /// the Date of an answer (RFC 9110, section 8.8.2.1).
    std::time_t modified = 0;
    /// For ETag: a strong entity tag, in quotes. Weak (`W/"..."`) if `is_recent`.
    std::string etag;
    /// The lines of ETag and Last-Modified.
    std::string validators;
    /// Whether the file had changed less than two seconds before it was opened. Another change in
    /// the same tick of the file system's clock might look the same, so such a file is read again
    /// when it is next revalidated.
    bool is_recent = false;
    file_state state;
};

/// What a path leads to. Immutable, and shared by the cache and the answers in progress: an answer
/// goes on with the file it has begun, whatever happens to the path.
// The last owner closes the descriptors. That may be on another thread, where a loop ends, so the
// count is atomic; an answer costs two changes of it.
struct served_file {
    bool is_directory = false;       // then there is nothing else
    std::string_view content_type{}; // of `plain`, by the name; valid until the program ends
    open_file plain{};
    std::optional<open_file> gzip{}; // `name.gz`
    std::optional<open_file> br{};   // `name.br`
};
using served_ref = std::shared_ptr<const served_file>;

/// The files beneath one root that were asked for recently, for one loop.
///
/// What is known about a path, also that nothing is there, is used for `revalidate_after`. Then the
/// path is resolved again, beneath the root, and what it leads to is compared with what is known:
/// a look at the open descriptor would miss that the file was renamed, replaced or hidden behind
/// another symbolic link, and one by fstatat(2) would follow links out of the root.
///
/// Bounded by static_options: the number of files that are open or in memory, and the bytes of
/// those in memory. 1000 more paths are remembered as directories or as missing. The least
/// recently used path is dropped first. Files in use stay open as long as they are used, so there
/// may be as many more as there are answers in progress. Once three quarters of the descriptors
/// of the process are in use, a newly opened file replaces the least recently used ones. When few
/// are left, the cache closes all its files that no answer uses. If none is left to look at a file
/// that is in memory, that is served as it was. Any lookup closes the files that nobody has asked
/// for in a minute, so that one that was deleted does not occupy its disk for long.
///
/// Loop thread only. Lookups in progress survive the cache.
class file_cache {
public:
    using root_ref = std::shared_ptr<const unique_fd>;

    /// `root` comes from open_root(), and may be shared by the caches of several loops.
    /// @param unused_for  After this time without use a file is closed by the next lookup.
    file_cache(root_ref root, const static_options& options,
               std::chrono::nanoseconds unused_for = std::chrono::minutes{1});
    file_cache(const file_cache&) = delete;
    file_cache& operator=(const file_cache&) = delete;
    ~file_cache();

    /// What is known about `path`, if that is recent enough. Makes no system call.
    ///
    /// @param path  As for open_beneath().
    /// @return Nothing: ask open(). Otherwise as open().
    [[nodiscard]] std::optional<result<served_ref>> find(std::string_view path) noexcept;

    /// find(), otherwise looks the path up, on a thread of run_blocking().
    ///
    /// Waiters for the same path share one lookup.
    ///
    /// @param path  Copied.
    /// @par Errors
    /// - Those of open_beneath(). Only is_missing() and `permission_denied` are remembered.
    /// - `std::errc::not_enough_memory`, `std::errc::resource_unavailable_try_again`: the lookup
    ///   could not be made.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or deadline came first.
    /// @par Cancellation
    /// Ends at once, even if a file system hangs. The lookup goes on: for other waiters, and for
    /// the cache.
    /// @par Cost
    /// For each of the file, `.gz` and `.br`: two system calls to open it, and three more to read a
    /// small one; three to find it unchanged.
    [[nodiscard]] task<result<served_ref>> open(std::string_view path);

    /// Forgets everything. Files in use stay open as long as they are used.
    void clear() noexcept;

    /// The files that are open or in memory, those with `.gz` and `.br` counted each.
    [[nodiscard]] std::size_t file_count() const noexcept;
    /// The bytes of files in memory.
    [[nodiscard]] std::size_t byte_count() const noexcept;
    /// The paths that are remembered as directories or as missing.
    [[nodiscard]] std::size_t other_count() const noexcept;

private:
    class content;

    const std::shared_ptr<content> content_; // shared with the lookups in progress
};

/// What a lookup needs.
struct lookup {
    file_cache::root_ref root;
    std::string path;
    open_rules rules;
    bool precompressed = true;
    std::size_t small_file = 0; // bytes
    /// What the path led to before, or null.
    served_ref known;
};

/// One lookup: all system calls of file_cache::open(). Any thread; may block.
///
/// @return `known` if nothing has changed.
/// @par Errors
/// Those of open_beneath(); `std::errc::not_enough_memory`.
[[nodiscard]] result<served_ref> look_up(const lookup& what) noexcept;

} // namespace simplenet::v0::http::detail
