#pragma once
// file_cache: what the files of a root are, and the open files themselves. Layer http, private.
// One cache for each loop and root; responses take files from it.

#include "http/files/open_beneath.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/static_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ctime>
#include <sys/types.h>

namespace simplenet::v0::http::detail {

/// Distinguishes one state of a file from all others: any change of the contents changes `changed`,
/// which no program can set.
struct file_state {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t size = 0;
    timespec changed{}; // st_ctim

    friend bool operator==(const file_state& left, const file_state& right) noexcept {
        return left.device == right.device && left.inode == right.inode &&
               left.size == right.size && left.changed.tv_sec == right.changed.tv_sec &&
               left.changed.tv_nsec == right.changed.tv_nsec;
    }
};

/// One representation of a file: a descriptor or the contents, and the validators that go with it.
/// Immutable.
struct open_file {
    /// For sendfile(2) and pread(2) at explicit offsets: the descriptor's own offset is shared.
    /// None if the contents are in memory.
    unique_fd fd;
    std::string contents;
    bool in_memory = false;
    /// The size when the file was opened. A file that another process truncates later has fewer
    /// bytes, and an answer that promised more must be aborted.
    std::uint64_t size = 0;
    std::time_t modified = 0; // seconds; not later than the time of the look
    /// A strong entity tag, in quotes. Weak (`W/"..."`) if the file was changed less than two
    /// seconds before: another change in the same tick of the clock might look the same.
    std::string etag;
    file_state state;

    /// Whether `etag` is weak.
    [[nodiscard]] bool is_recent() const noexcept { return etag.starts_with('W'); }
};

/// What a path leads to. Immutable, and shared by the cache and the answers in progress: an answer
/// goes on with the file it has begun, whatever happens to the path.
// The last owner closes the descriptors. That may be on another thread, where a loop ends, so the
// count is atomic; an answer costs two changes of it.
struct served_file {
    bool is_directory = false; // then there is nothing else
    open_file plain;
    std::optional<open_file> gzip; // `name.gz`
    std::optional<open_file> br;   // `name.br`
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
/// recently used path is dropped first. Files in use stay open after that, as long as they are.
///
/// Loop thread only. Lookups in progress survive the cache.
class file_cache {
public:
    using root_ref = std::shared_ptr<const unique_fd>;

    /// `root` comes from open_root(), and may be shared by the caches of several loops.
    file_cache(root_ref root, const static_options& options);
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
    /// Two system calls for each of the file, `.gz` and `.br` to open it, one more to read a small
    /// one; three to find it unchanged.
    [[nodiscard]] task<result<served_ref>> open(std::string_view path);

    /// Forgets everything that no answer uses.
    void clear() noexcept;

    /// The files that are open or in memory, those with `.gz` and `.br` counted each.
    [[nodiscard]] std::size_t file_count() const noexcept;
    /// The bytes of files in memory.
    [[nodiscard]] std::size_t byte_count() const noexcept;
    /// The paths that are remembered as directories or as missing.
    [[nodiscard]] std::size_t other_count() const noexcept;

private:
    class state;

    // Shared with the lookups in progress.
    std::shared_ptr<state> state_;
};

/// One lookup without a cache: all system calls of file_cache::open(). Any thread; may block.
///
/// @param known  What the path led to before, or null; returned if nothing has changed.
[[nodiscard]] result<served_ref> look_up(int root, std::string_view path, open_rules rules,
                                         bool precompressed, std::size_t small_file,
                                         const served_ref& known);

} // namespace simplenet::v0::http::detail
