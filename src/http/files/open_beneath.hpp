#pragma once
// open_beneath: opens a file or directory that is certainly beneath a root. Layer http, private.
// Every file that a server sends to a client is opened here.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/http/static_options.hpp>

#include <cstdint>
#include <string_view>
#include <system_error>

#include <sys/stat.h>

namespace simplenet::v0::http::detail {

/// What is opened beneath a root.
struct open_rules {
    symlinks follow = symlinks::beneath;
    /// Whether a part of the path may begin with a dot. Targets of symbolic links always may.
    bool hidden = false;
};

enum class access : std::uint8_t {
    read,
    /// For a look at its properties (O_PATH): no permission to read is needed.
    look,
};

/// A regular file or a directory.
struct opened {
    unique_fd fd;
    struct stat status;

    [[nodiscard]] bool is_directory() const noexcept { return S_ISDIR(status.st_mode); }
};

/// Opens a directory, as the root of later calls of open_beneath(). Follows symbolic links.
///
/// @par Errors
/// Those of open(2); `std::errc::invalid_argument`: a NUL in the path.
[[nodiscard]] result<unique_fd> open_root(std::string_view directory) noexcept;

/// Whether `path` has the form that open_beneath() takes: nothing, or parts joined by `/`, none of
/// which is empty, `.` or `..`; no NUL, and no `%2F`.
///
/// normalise_path() makes such paths, except for a slash at either end. Its `%2F` is a slash that
/// is part of a name, which no file has; its `%25` is for decoded_parameter() to decode.
[[nodiscard]] bool is_relative_path(std::string_view path) noexcept;

/// Whether a part of `path` begins with a dot, other than a first part `.well-known` (RFC 8615).
[[nodiscard]] bool is_hidden(std::string_view path) noexcept;

/// Why open_beneath() refuses `path` without a system call: `std::errc::invalid_argument`, or
/// `std::errc::no_such_file_or_directory` if it is hidden. No error: it does not.
[[nodiscard]] std::error_code refusal_of(std::string_view path, open_rules rules) noexcept;

/// Opens the file or directory at `path` beneath `root`, for reading or for a look. An empty path
/// is the root itself.
///
/// Any thread; may block. Neither a FIFO nor a device makes it wait. The descriptor is CLOEXEC.
///
/// Nothing outside of the root is opened, whatever symbolic links there are and whatever other
/// processes rename meanwhile: openat2(2) with RESOLVE_BENEATH resolves the path, or walk_beneath()
/// where the kernel or a sandbox does not offer that.
///
/// @par Errors
/// - `std::errc::invalid_argument`: not is_relative_path().
/// - is_missing(): there is no such file, it is hidden, or the path leaves the root.
/// - `std::errc::permission_denied`: of the file system; or neither a regular file nor a directory.
/// - Anything else openat2(2) and fstat(2) report.
/// @par Cost
/// Two system calls; walk_beneath() needs three or more for each part of the path.
[[nodiscard]] result<opened> open_beneath(int root, std::string_view path, access how,
                                          open_rules rules) noexcept;

/// open_beneath() without openat2(2), with the same results: opens one part of the path after the
/// other and follows symbolic links itself. Links of other users in directories like /tmp are
/// refused even if the kernel is told to follow them (proc(5), protected_symlinks).
///
/// @par Errors
/// As open_beneath(); also EMFILE if the path is deeper than there are descriptors, and ENOMEM.
[[nodiscard]] result<opened> walk_beneath(int root, std::string_view path, access how,
                                          open_rules rules) noexcept;

/// Whether `error` means that a path leads to nothing that may be served.
[[nodiscard]] bool is_missing(const std::error_code& error) noexcept;

/// The status of the answer to a request whose file could not be opened: 404, also for a path that
/// no file can have; 403; 503 if memory, descriptors or threads are short; otherwise 500.
[[nodiscard]] unsigned status_of(const std::error_code& error) noexcept;

} // namespace simplenet::v0::http::detail
