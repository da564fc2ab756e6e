#include "http/files/open_beneath.hpp"

#include "sys/file_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace simplenet::v0::http::detail {

namespace sys = simplenet::detail::sys;

namespace {

/// The number of symbolic links that the kernel follows in one path (path_resolution(7)).
constexpr int most_links = 40;

/// openat2(2) fails with EAGAIN whenever anything in the system is renamed during a `..`. After
/// this many attempts the path is walked instead, which renames elsewhere do not disturb.
constexpr int most_attempts = 4;

/// A path with its terminator.
class c_path {
public:
    /// False: the path is too long for the kernel.
    [[nodiscard]] bool assign(std::string_view path) noexcept {
        if (path.size() >= bytes_.size()) return false;
        *std::ranges::copy(path, bytes_.begin()).out = '\0';
        return true;
    }
    [[nodiscard]] const char* get() const noexcept { return bytes_.data(); }

private:
    std::array<char, PATH_MAX> bytes_;
};

/// The flags that open a regular file or a directory.
// O_NONBLOCK: a FIFO without a writer, or a device, would wait. It has no effect on regular files.
// O_NOCTTY: a terminal must not become that of the server.
constexpr int flags_for(access how) noexcept {
    return how == access::look ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY;
}

/// What the kernel reports for a device without a driver or for a socket is the same to us as the
/// success for a FIFO.
constexpr long refused_kind(long outcome) noexcept {
    return outcome == -ENXIO || outcome == -ENODEV ? -EACCES : outcome;
}

/// Takes over a descriptor that is beneath the root.
result<opened> checked(unique_fd fd) noexcept {
    opened file{std::move(fd), {}};
    if (const int looked = sys::fstat(file.fd.get(), file.status); looked < 0) {
        return sys::fail_with(looked);
    }
    if (!S_ISREG(file.status.st_mode) && !S_ISDIR(file.status.st_mode)) {
        return sys::fail_with(-EACCES);
    }
    return file;
}

} // namespace

result<unique_fd> open_root(std::string_view directory) noexcept {
    c_path path;
    if (directory.contains('\0')) return fail(std::errc::invalid_argument);
    if (!path.assign(directory)) return fail(std::errc::filename_too_long);
    const int fd = sys::openat(AT_FDCWD, path.get(), O_PATH | O_DIRECTORY);
    if (fd < 0) return sys::fail_with(fd);
    return unique_fd{fd};
}

bool is_relative_path(std::string_view path) noexcept {
    if (path.empty()) return true;
    for (std::size_t begin = 0;;) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view part = path.substr(begin, end - begin);
        if (part.empty() || part == "." || part == "..") return false;
        if (end == path.size()) break;
        begin = end + 1;
    }
    if (path.contains('\0')) return false;
    for (std::size_t at = path.find('%'); at != path.npos; at = path.find('%', at + 1)) {
        const std::string_view next = path.substr(at + 1, 2);
        if (next == "2F" || next == "2f") return false;
    }
    return true;
}

bool is_hidden(std::string_view path) noexcept {
    constexpr std::string_view well_known = ".well-known";
    if (path.starts_with(well_known) &&
        (path.size() == well_known.size() || path[well_known.size()] == '/')) {
        path.remove_prefix(well_known.size());
    }
    return path.starts_with('.') || path.contains("/.");
}

std::error_code refusal_of(std::string_view path, open_rules rules) noexcept {
    if (!is_relative_path(path)) return std::make_error_code(std::errc::invalid_argument);
    if (!rules.hidden && is_hidden(path)) {
        return std::make_error_code(std::errc::no_such_file_or_directory);
    }
    return {};
}

result<opened> open_beneath(int root, std::string_view path, access how,
                            open_rules rules) noexcept {
    if (const auto refused = refusal_of(path, rules)) return fail(refused);
    c_path name;
    if (!name.assign(path.empty() ? "." : path)) return fail(std::errc::filename_too_long);

    // Magic links are those of /proc: they lead to any file that a process has open.
    std::uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    if (rules.follow == symlinks::never) resolve |= RESOLVE_NO_SYMLINKS;
    for (int attempts = 0; attempts < most_attempts; ++attempts) {
        const int fd = sys::openat2(root, name.get(), flags_for(how), resolve);
        if (fd >= 0) return checked(unique_fd{fd});
        if (fd == -EAGAIN) continue;
        // Not remembered: a call that a sandbox refuses costs less than one part of the walk, and
        // some file systems report EPERM for a single file.
        if (fd == -ENOSYS || fd == -EPERM) break;
        return sys::fail_with(refused_kind(fd));
    }
    return walk_beneath(root, path, how, rules);
}

namespace {

/// One resolution of a path.
///
/// The kernel's `..` is not used to resolve a path: a directory that another process moves away
/// meanwhile would lead out of the root. The directories on the way are kept open instead.
class walk {
public:
    walk(int root, access how, open_rules rules) noexcept
        : root_{root}
        , how_{how}
        , rules_{rules} {}

    /// @pre `path` is not empty and does not begin with a slash.
    result<opened> to(std::string_view path) {
        rest_ = path;
        for (;;) {
            const std::size_t end = std::min(rest_.find('/'), rest_.size());
            const std::size_t next = std::min(rest_.find_first_not_of('/', end), rest_.size());
            const part at{rest_.substr(0, end), next != end, next == rest_.size()};
            rest_.erase(0, next);
            result<opened> found = at.name == "." || at.name == ".." ? dots(at) : enter(at);
            if (!found || found->fd) return found;
        }
    }

private:
    struct part {
        std::string name;
        bool slash; // a slash follows, so it has to be a directory
        bool last;
    };

    [[nodiscard]] int current() const noexcept {
        return above_.empty() ? root_ : above_.back().get();
    }

    // These return no descriptor if the walk continues with `rest_`.

    result<opened> dots(const part& at) {
        // Needs the permission to search the directory, like any other name.
        const int searched = sys::openat(current(), ".", O_PATH | O_DIRECTORY);
        if (searched < 0) return sys::fail_with(searched);
        unique_fd{searched}.reset();
        if (at.name == "..") {
            if (above_.empty()) return sys::fail_with(-EXDEV);
            above_.pop_back();
        }
        if (!at.last) return opened{};
        return finish(sys::openat(current(), ".", flags_for(how_) | O_DIRECTORY));
    }

    result<opened> enter(const part& at) {
        // Without a permission to read, and without an effect on devices.
        const int looked = sys::openat(current(), at.name.c_str(), O_PATH | O_NOFOLLOW);
        if (looked < 0) return sys::fail_with(looked);
        unique_fd found{looked};
        struct stat status{};
        if (const int outcome = sys::fstat(looked, status); outcome < 0) {
            return sys::fail_with(outcome);
        }

        if (S_ISLNK(status.st_mode)) return follow(looked, status, at);
        const bool directory = S_ISDIR(status.st_mode);
        if (directory && !at.last) {
            above_.push_back(std::move(found));
            return opened{};
        }
        if (!directory && (at.slash || !at.last)) return sys::fail_with(-ENOTDIR);
        if (!directory && !S_ISREG(status.st_mode)) return sys::fail_with(-EACCES);
        if (how_ == access::look) return finish(found.release());

        // By now the name may mean another file, but still one in this directory.
        const int flags = flags_for(how_) | O_NOFOLLOW | (at.slash ? O_DIRECTORY : 0);
        const int fd = sys::openat(current(), at.name.c_str(), flags);
        if (fd != -ELOOP) return finish(fd);
        // It has become a symbolic link.
        if (++links_ > most_links) return sys::fail_with(-ELOOP);
        rest_ = at.name + (at.slash ? "/" : "");
        return opened{};
    }

    /// Puts the target of a symbolic link in front of `rest_`.
    result<opened> follow(int link, const struct stat& status, const part& at) {
        if (rules_.follow == symlinks::never || ++links_ > most_links) {
            return sys::fail_with(-ELOOP);
        }
        // The kernel's protection of shared directories (proc(5), protected_symlinks), which it
        // applies only where it follows a link itself.
        struct stat directory{};
        if (const int outcome = sys::fstat(current(), directory); outcome < 0) {
            return sys::fail_with(outcome);
        }
        constexpr mode_t shared = S_ISVTX | S_IWOTH;
        if ((directory.st_mode & shared) == shared && status.st_uid != directory.st_uid &&
            status.st_uid != ::geteuid()) {
            return sys::fail_with(-EACCES);
        }

        std::string target(PATH_MAX, '\0');
        const ssize_t size = sys::read_link(link, target.data(), target.size());
        if (size < 0) return sys::fail_with(size);
        target.resize(static_cast<std::size_t>(size));
        if (target.empty()) return sys::fail_with(-ENOENT);
        if (target.starts_with('/')) return sys::fail_with(-EXDEV);
        if (at.slash) target += '/';
        rest_.insert(0, target);
        return opened{};
    }

    /// The end of the walk. Like openat2(2), checks that the directory of the file is still beneath
    /// the root: another process may have moved it away before the file in it was opened.
    result<opened> finish(int opened_now) {
        if (opened_now < 0) return sys::fail_with(refused_kind(opened_now));
        unique_fd fd{opened_now};
        if (!above_.empty()) {
            if (const int outcome = climb(); outcome < 0) return sys::fail_with(outcome);
        }
        return checked(std::move(fd));
    }
    /// From the current directory up to the root.
    [[nodiscard]] int climb() const {
        struct stat root{};
        struct stat below{};
        if (const int looked = sys::fstat(root_, root); looked < 0) return looked;
        for (unique_fd at;;) {
            const int up = sys::openat(at ? at.get() : current(), "..", O_PATH | O_DIRECTORY);
            if (up < 0) return up;
            at.reset(up);
            struct stat status{};
            if (const int looked = sys::fstat(up, status); looked < 0) return looked;
            if (is_same(status, root)) return 0;
            // The root of the file system is its own parent.
            if (is_same(status, below)) return -EXDEV;
            below = status;
        }
    }
    static bool is_same(const struct stat& left, const struct stat& right) noexcept {
        return left.st_ino == right.st_ino && left.st_dev == right.st_dev;
    }

    const int root_; // borrowed
    const access how_;
    const open_rules rules_;
    std::string rest_;             // not resolved yet; begins with a name
    std::vector<unique_fd> above_; // from below the root to the current directory
    int links_ = 0;                // followed
};

} // namespace

result<opened> walk_beneath(int root, std::string_view path, access how,
                            open_rules rules) noexcept {
    if (const auto refused = refusal_of(path, rules)) return fail(refused);
    if (path.size() >= PATH_MAX) return fail(std::errc::filename_too_long);
    try {
        return walk{root, how, rules}.to(path.empty() ? "." : path);
    } catch (const std::bad_alloc&) {
        return fail(std::errc::not_enough_memory);
    }
}

bool is_missing(const std::error_code& error) noexcept {
    if (error.category() != std::system_category() && error.category() != std::generic_category()) {
        return false;
    }
    switch (error.value()) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP: // also: a link where links are not followed
    case EXDEV: // leaves the root
        return true;
    default:
        return false;
    }
}

unsigned status_of(const std::error_code& error) noexcept {
    if (is_missing(error) || error == std::errc::invalid_argument) return 404;
    if (error == std::errc::permission_denied) return 403;
    for (const auto shortage :
         {std::errc::not_enough_memory, std::errc::too_many_files_open,
          std::errc::too_many_files_open_in_system, std::errc::resource_unavailable_try_again}) {
        if (error == shortage) return 503;
    }
    return 500;
}

} // namespace simplenet::v0::http::detail
