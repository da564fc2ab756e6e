#include "http/gateway/spooled_body.hpp"

#include "http/gateway/spool_file.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/runtime/run_blocking.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace simplenet::v0::http::detail {

/// Its functions run on other threads, one at a time, while the loop leaves it alone.
class spooled_body::file {
public:
    explicit file(std::string_view directory)
        : file_{directory} {}

    /// Appends the block.
    [[nodiscard]] result<> write() {
        const result<> written = file_.write(size, {block.data(), held});
        if (written) size += held;
        return written;
    }
    /// Reads the block at `offset`, which is not at the end.
    [[nodiscard]] result<> read(std::uint64_t offset) {
        if (block.size() == 0) block = scratch::borrow(spool_block);
        held = 0;
        begin = offset;
        const auto most =
            static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - offset));
        const result<> filled = file_.read(offset, {block.data(), most});
        if (filled) held = most;
        return filled;
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
    spool_file file_;
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
