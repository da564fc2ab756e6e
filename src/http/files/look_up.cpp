// The system calls of the cache of files, on a thread that may block.

#include "http/codec/date.hpp"
#include "http/files/file_cache.hpp"
#include "http/files/media_types.hpp"

#include "sys/file_calls.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace simplenet::v0::http::detail {

namespace sys = simplenet::detail::sys;

namespace {

/// The coarsest clock of a file system in use (FAT: 2 s for writes).
constexpr std::chrono::seconds coarsest_clock{2};

std::chrono::nanoseconds since_1970(const timespec& time) noexcept {
    // Saturates: a file system may have any number of seconds.
    constexpr std::time_t most = std::chrono::nanoseconds::max().count() / 1'000'000'000 - 1;
    return std::chrono::seconds{std::clamp(time.tv_sec, -most, most)} +
           std::chrono::nanoseconds{time.tv_nsec};
}

/// The clock that Date uses. It lags the exact one by up to a tick, so the exact one could give a
/// Last-Modified later than Date.
std::chrono::nanoseconds wall_clock_now() noexcept {
    timespec now{}; // clock_gettime(2) cannot fail here
    static_cast<void>(::clock_gettime(CLOCK_REALTIME_COARSE, &now));
    return since_1970(now);
}

/// The finalizer of splitmix64, a permutation of the numbers of 64 bits.
constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

/// `"<size>-<number>"`. The number stands for inode and time of change together: what inodes there
/// are is no client's business.
// Not the time of the last write, which programs set: archives and reproducible builds give all
// their files the same one, and an inode is soon used again, so that a new version of equal size
// had the tag of the old one. The time of change also moves when a file is renamed or its
// permissions change, which costs clients one more transfer.
std::string entity_tag(const file_state& state, bool weak) {
    const auto changed = static_cast<std::uint64_t>(since_1970(state.changed).count());
    char text[40];
    char* at = std::to_chars(std::begin(text), std::end(text), state.size, 16).ptr;
    *at++ = '-';
    at = std::to_chars(at, std::end(text), mixed(mixed(state.inode) ^ changed), 16).ptr;

    std::string tag{weak ? "W/\"" : "\""};
    return tag.append(text, at).append("\"");
}

/// Reads the whole file. False: it has not the size that it had.
result<bool> read_all_of(int fd, std::string& into, std::size_t size) {
    into.resize(size);
    for (std::size_t done = 0; done < size;) {
        const ssize_t count =
            sys::read_at(fd, into.data() + done, size - done, static_cast<off_t>(done));
        if (count < 0) return sys::fail_with(count);
        if (count == 0) return false;
        done += static_cast<std::size_t>(count);
    }
    return true;
}

/// @param now  From before the file was opened.
result<open_file> take_over(opened from, std::size_t small_file, std::chrono::nanoseconds now) {
    open_file file;
    file.fd = std::move(from.fd);
    file.state = file_state::of(from.status);
    // Contents that belong to no one state of the file are read again. A file that changes all the
    // time stays open instead.
    for (int attempts = 0; attempts < 3; ++attempts) {
        if (file.state.size > small_file || small_file == 0) break;
        const auto whole =
            read_all_of(file.fd.get(), file.contents, static_cast<std::size_t>(file.state.size));
        if (!whole) return fail(whole);
        if (const int looked = sys::fstat(file.fd.get(), from.status); looked < 0) {
            return sys::fail_with(looked);
        }
        file.in_memory = *whole && file.state == file_state::of(from.status);
        if (file.in_memory) break;
        file.state = file_state::of(from.status);
    }
    if (file.in_memory) {
        file.fd.reset();
    } else {
        file.contents = {};
    }

    file.size = file.state.size;
    file.modified =
        std::min(file.state.written.tv_sec, std::chrono::floor<std::chrono::seconds>(now).count());
    file.is_recent = since_1970(file.state.changed) > now - coarsest_clock;
    file.etag = entity_tag(file.state, file.is_recent);
    file.validators = "ETag: " + file.etag + "\r\n";
    if (file.modified >= 0) {
        char date[date_size];
        format_date(file.modified, date);
        file.validators.append("Last-Modified: ").append(date, date_size).append("\r\n");
    }
    return file;
}

/// Whether a compressed file is of use beside `plain`.
bool is_current(const opened& compressed, const file_state& plain) noexcept {
    return !compressed.is_directory() &&
           since_1970(compressed.status.st_mtim) >= since_1970(plain.written);
}

/// A compressed file beside `plain`, if there is one. Errors count as none: the file itself is
/// there.
std::optional<open_file> beside(const lookup& what, std::string_view suffix,
                                const file_state& plain, std::chrono::nanoseconds now) {
    auto found =
        open_beneath(what.root->get(), what.path + std::string{suffix}, access::read, what.rules);
    if (!found || !is_current(*found, plain)) return std::nullopt;
    auto taken = take_over(*std::move(found), what.small_file, now);
    if (!taken) return std::nullopt;
    return *std::move(taken);
}

bool is_unchanged_beside(const lookup& what, std::string_view suffix,
                         const std::optional<open_file>& known) {
    const auto found =
        open_beneath(what.root->get(), what.path + std::string{suffix}, access::look, what.rules);
    const bool is_there = found && is_current(*found, what.known->plain.state);
    if (!known) return !is_there;
    return is_there && !known->is_recent && known->state == file_state::of(found->status);
}

bool may_be_compressed(const lookup& what) noexcept {
    const std::string_view path = what.path;
    return what.precompressed && !path.ends_with(".gz") && !path.ends_with(".br");
}

/// Resolves the path again, since it may lead elsewhere by now, and compares.
bool is_unchanged(const lookup& what) {
    const served_file& known = *what.known;
    if (known.is_directory || known.plain.is_recent) return false;
    const auto found = open_beneath(what.root->get(), what.path, access::look, what.rules);
    if (!found || known.plain.state != file_state::of(found->status)) return false;
    if (!may_be_compressed(what)) return true;
    return is_unchanged_beside(what, ".gz", known.gzip) &&
           is_unchanged_beside(what, ".br", known.br);
}

served_ref a_directory() {
    return std::make_shared<const served_file>(served_file{.is_directory = true});
}

result<served_ref> look_anew(const lookup& what) {
    const auto now = wall_clock_now();
    auto found = open_beneath(what.root->get(), what.path, access::read, what.rules);
    if (!found && found.error() == std::errc::permission_denied) {
        // The files of a directory may be readable where the directory is not.
        const auto seen = open_beneath(what.root->get(), what.path, access::look, what.rules);
        if (seen && seen->is_directory()) return a_directory();
    }
    if (!found) return fail(found);
    if (found->is_directory()) return a_directory();

    auto plain = take_over(*std::move(found), what.small_file, now);
    if (!plain) return fail(plain);
    const auto made = std::make_shared<served_file>();
    made->plain = *std::move(plain);
    const std::string_view path = what.path;
    made->content_type = media_type_of(path.substr(path.rfind('/') + 1));
    if (may_be_compressed(what)) {
        made->gzip = beside(what, ".gz", made->plain.state, now);
        made->br = beside(what, ".br", made->plain.state, now);
    }
    return made;
}

} // namespace

file_state file_state::of(const struct stat& status) noexcept {
    return {.device = status.st_dev,
            .inode = status.st_ino,
            .size = static_cast<std::uint64_t>(status.st_size),
            .written = status.st_mtim,
            .changed = status.st_ctim};
}

bool operator==(const file_state& left, const file_state& right) noexcept {
    return left.device == right.device && left.inode == right.inode && left.size == right.size &&
           left.written.tv_sec == right.written.tv_sec &&
           left.written.tv_nsec == right.written.tv_nsec &&
           left.changed.tv_sec == right.changed.tv_sec &&
           left.changed.tv_nsec == right.changed.tv_nsec;
}

result<served_ref> look_up(const lookup& what) noexcept {
    try {
        if (what.known != nullptr && is_unchanged(what)) return what.known;
        return look_anew(what);
    } catch (const std::bad_alloc&) {
        return fail(std::errc::not_enough_memory);
    }
}

} // namespace simplenet::v0::http::detail
