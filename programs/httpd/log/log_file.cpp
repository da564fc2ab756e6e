#include "httpd/log/log_file.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace httpd {

namespace {

// O_NONBLOCK: a named pipe without a reader is an error then, and a write to it never blocks.
constexpr int open_flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
constexpr ::mode_t open_mode = 0640;

simplenet::result<simplenet::unique_fd> open_path(const std::string& path) {
    simplenet::unique_fd opened{::open(path.c_str(), open_flags, open_mode)};
    if (!opened) return simplenet::fail(std::error_code{errno, std::system_category()});
    return opened;
}

/// The bytes of `lines` for one write: whole lines, unless the first one is too long.
std::size_t one_piece(std::string_view lines, std::size_t most) noexcept {
    if (lines.size() <= most) return lines.size();
    const auto end = lines.substr(0, most).rfind('\n');
    return end == std::string_view::npos ? most : end + 1;
}

} // namespace

simplenet::result<std::shared_ptr<log_file>> log_file::open(std::string path, int standard) {
    std::shared_ptr<log_file> made{new log_file{std::move(path)}};
    if (made->path_ == "-") {
        made->standard_ = standard;
    } else {
        auto opened = open_path(made->path_);
        if (!opened) return simplenet::fail(opened);
        made->owned_ = std::move(*opened);
    }
    made->look_at();
    return made;
}

simplenet::result<bool> log_file::reopen() {
    if (!owned_) return false;
    auto opened = open_path(path_);
    if (!opened) return simplenet::fail(opened);
    owned_ = std::move(*opened);
    look_at();
    return true;
}

void log_file::look_at() noexcept {
    struct stat state{};
    is_regular_ = ::fstat(fd(), &state) == 0 && S_ISREG(state.st_mode);
}

std::size_t log_file::write(std::string_view lines, std::chrono::milliseconds patience,
                            std::error_code& why) noexcept {
    std::size_t written = 0;
    while (written < lines.size()) {
        auto rest = lines.substr(written);
        if (!is_regular_) {
            // A writable pipe takes PIPE_BUF bytes without blocking. It may be shared with
            // processes that do not expect O_NONBLOCK, so the flag is not set on it.
            ::pollfd wait{fd(), POLLOUT, 0};
            const int ready = ::poll(&wait, 1, static_cast<int>(patience.count()));
            if (ready < 0 && errno == EINTR) continue;
            if (ready == 0) {
                why = std::make_error_code(std::errc::resource_unavailable_try_again);
                return written;
            }
            rest = rest.substr(0, one_piece(rest, PIPE_BUF));
        }
        const auto count = ::write(fd(), rest.data(), rest.size());
        if (count > 0) {
            written += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            const int error = count == 0 ? ENOSPC : errno;
            why = {error, std::system_category()};
            return written;
        }
    }
    return written;
}

} // namespace httpd
