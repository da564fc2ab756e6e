#include "http/gateway/spool_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0::http::detail {

namespace {

[[nodiscard]] std::unexpected<std::error_code> last_error() noexcept {
    return fail(std::error_code{errno, std::system_category()});
}

[[nodiscard]] result<unique_fd> open_unnamed(const std::string& directory) {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) return unique_fd{fd};
    // EISDIR: a kernel that takes O_TMPFILE for O_DIRECTORY (open(2), O_TMPFILE).
    if (errno != EOPNOTSUPP && errno != EISDIR) return last_error();
    std::string name = directory + "/simplenet-XXXXXX"; // mkostemp(3) replaces these letters
    unique_fd named{::mkostemp(name.data(), O_CLOEXEC)};
    if (!named) return last_error();
    if (::unlink(name.c_str()) != 0) return last_error();
    return named;
}

} // namespace

std::string default_temporary_directory() {
    const char* const set = std::getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe)
    return set != nullptr && *set != '\0' ? set : "/tmp";
}

result<> spool_file::write(std::uint64_t offset, const_buffer from) {
    if (!fd_) {
        result<unique_fd> made = open_unnamed(directory_);
        if (!made) return fail(made);
        fd_ = *std::move(made);
    }
    while (!from.empty()) {
        const ssize_t count =
            ::pwrite(fd_.get(), from.data(), from.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return last_error();
        // No file system does this for a regular file, but a loop would never end.
        if (count == 0) return fail(std::errc::no_space_on_device);
        offset += static_cast<std::uint64_t>(count);
        from = from.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

result<> spool_file::read(std::uint64_t offset, mutable_buffer into) const {
    while (!into.empty()) {
        const ssize_t count =
            ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return last_error();
        if (count == 0) return fail(std::errc::io_error);
        offset += static_cast<std::uint64_t>(count);
        into = into.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

result<> spool_file::clear() {
    if (fd_ && ::ftruncate(fd_.get(), 0) != 0) return last_error();
    return {};
}

} // namespace simplenet::v0::http::detail
