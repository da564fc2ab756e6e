#include "http/gateway/spooled_body.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/runtime/run_blocking.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::size_t spool_block = std::size_t{64} * 1024;

[[nodiscard]] std::unexpected<std::error_code> last_error() noexcept {
    return fail(std::error_code{errno, std::system_category()});
}

[[nodiscard]] result<unique_fd> open_unnamed(const std::string& directory) noexcept {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) return unique_fd{fd};
    // EISDIR: a kernel that takes O_TMPFILE for O_DIRECTORY (open(2), O_TMPFILE).
    if (errno != EOPNOTSUPP && errno != EISDIR) return last_error();
    std::string name = directory + "/simplenet-XXXXXX";
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

/// Its functions run on other threads, one at a time, while the loop leaves it alone.
class spooled_body::file {
public:
    explicit file(std::string_view directory)
        : directory_{directory} {}

    /// Appends the block.
    [[nodiscard]] result<> write() {
        if (!fd_) {
            result<unique_fd> made = open_unnamed(directory_);
            if (!made) return fail(made);
            fd_ = *std::move(made);
        }
        const_buffer rest{block.data(), held};
        while (!rest.empty()) {
            const ssize_t count =
                ::pwrite(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(size));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return last_error();
            // No file system does this for a regular file, but a loop would never end.
            if (count == 0) return fail(std::errc::no_space_on_device);
            size += static_cast<std::uint64_t>(count);
            rest = rest.subspan(static_cast<std::size_t>(count));
        }
        return {};
    }
    /// Reads the block at `offset`, which is not at the end.
    [[nodiscard]] result<> read(std::uint64_t offset) {
        if (block.size() == 0) block = scratch::borrow(spool_block);
        begin = offset;
        held = 0;
        const std::size_t most =
            static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - offset));
        while (held < most) {
            const ssize_t count = ::pread(fd_.get(), block.data() + held, most - held,
                                          static_cast<off_t>(offset + held));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return last_error();
            if (count == 0) return fail(std::errc::io_error);
            held += static_cast<std::size_t>(count);
        }
        return {};
    }
    /// What the block has at `offset`.
    [[nodiscard]] const_buffer at(std::uint64_t offset) const noexcept {
        if (offset < begin || offset >= begin + held) return {};
        return const_buffer{block.data(), held}.subspan(static_cast<std::size_t>(offset - begin));
    }

    std::uint64_t size = 0;  // bytes in the file
    scratch block;           // on its way to the file, or from it
    std::size_t held = 0;    // bytes in the block
    std::uint64_t begin = 0; // of the block in the file

private:
    std::string directory_;
    unique_fd fd_;
};

task<result<>> spooled_body::fill(async_reader_ref from) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    for (;;) {
        if (file_ && file_->held == spool_block) {
            const result<> stored = co_await store();
            if (!stored) co_return stored;
        }
        const mutable_buffer into = room();
        const result<std::size_t> count = co_await from.read_some(into);
        if (count) {
            (file_ ? file_->held : in_memory_) += *count;
            size_ += *count;
            continue;
        }
        if (count.error() != simplenet::errc::end_of_stream || within.stopped()) {
            size_ = in_memory_ = 0;
            co_return fail(count);
        }
        if (file_ && file_->held != 0) {
            const result<> stored = co_await store();
            if (!stored) co_return stored;
        }
        // The request may wait for a place at a backend.
        if (file_) file_->block = {};
        co_return result<>{};
    }
}

mutable_buffer spooled_body::room() {
    constexpr std::size_t least = std::size_t{4} * 1024;
    if (in_memory_ < memory_.size()) {
        return {memory_.data() + in_memory_, memory_.size() - in_memory_};
    }
    if (in_memory_ < most_in_memory_) {
        scratch larger =
            scratch::borrow(std::min(std::max(least, 4 * in_memory_), most_in_memory_));
        if (in_memory_ != 0) std::memcpy(larger.data(), memory_.data(), in_memory_);
        memory_ = std::move(larger);
        return {memory_.data() + in_memory_, memory_.size() - in_memory_};
    }
    if (!file_) {
        file_ = std::make_shared<file>(directory_);
        file_->block = scratch::borrow(spool_block);
    }
    return {file_->block.data() + file_->held, spool_block - file_->held};
}

task<result<>> spooled_body::store() {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    auto write = [](const std::shared_ptr<file>& to) { return to->write(); };
    const result<> stored = co_await run_blocking(write, file_);
    if (stored) {
        file_->held = 0;
        co_return stored;
    }
    size_ = in_memory_ = 0;
    const std::error_code why = stored.error();
    if (!within.stopped()) {
        const bool is_full = why == std::errc::no_space_on_device ||
                             why == std::errc::file_too_large ||
                             why == std::error_code{EDQUOT, std::system_category()};
        disk_status_ = is_full ? 507 : 500;
    }
    co_return stored;
}

task<result<std::size_t>> spooled_body::read_some(mutable_buffer into) {
    SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
    if (at_ >= size_) co_return fail(simplenet::errc::end_of_stream);
    const_buffer there;
    if (at_ < in_memory_) {
        there = front().subspan(static_cast<std::size_t>(at_));
    } else {
        const std::uint64_t offset = at_ - in_memory_;
        there = file_->at(offset);
        if (there.empty()) {
            auto read = [](const std::shared_ptr<file>& from, std::uint64_t where) {
                return from->read(where);
            };
            const result<> loaded = co_await run_blocking(read, file_, offset);
            if (!loaded) co_return fail(loaded);
            there = file_->at(offset);
        }
    }
    const std::size_t count = std::min(into.size(), there.size());
    std::memcpy(into.data(), there.data(), count);
    at_ += count;
    co_return count;
}

} // namespace simplenet::v0::http::detail
