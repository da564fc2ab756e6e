#include "http/gateway/spool_queue.hpp"

#include <simplenet/runtime/run_blocking.hpp>

#include <algorithm>
#include <system_error>

namespace simplenet::v0::http::detail {

bool spool_queue::has_free_block() {
    if (!free_.empty()) return true;
    if (blocks_in_file_ == most_blocks_) return false;
    if (free_.capacity() == blocks_in_file_) free_.reserve(2 * blocks_in_file_ + 16);
    if (!on_->on_disk.grow(spool_block)) return false;
    free_.push_back(blocks_in_file_++);
    return true;
}

mutable_buffer spool_queue::room() {
    appends_ = false;
    if (most_blocks_ == 0 || has_failed_ || is_clearing_) return {};
    if (!on_) on_ = std::make_shared<shared_state>(directory_, shared_);
    if (empty() && !stored_.empty()) { // its last block was kept for this
        free_.push_back(stored_.front().at);
        stored_.clear();
        taken_ = loaded_begin_ = loaded_end_ = 0;
    }
    std::size_t size = stored_.empty() ? 0 : spool_block - stored_.back().end;
    appends_ = size >= least_room || (size != 0 && !has_free_block());
    if (!appends_) size = has_free_block() ? spool_block : 0;
    if (size == 0) return {};
    if (on_->in.size() == 0) on_->in = scratch::borrow(spool_block);
    return {on_->in.data(), size};
}

task<result<>> spool_queue::put(std::size_t count) {
    auto write = [](const std::shared_ptr<shared_state>& to, std::uint64_t at, std::size_t size) {
        return to->file.write(at, {to->in.data(), size});
    };
    const std::uint64_t at = appends_ ? stored_.back().at : free_.back();
    const std::uint64_t offset = at * spool_block + (appends_ ? stored_.back().end : 0);
    if (!appends_) free_.pop_back();
    is_putting_ = true;
    result<> written;
    try {
        written = co_await run_blocking(write, on_, offset, count);
    } catch (const std::system_error& no_thread) {
        written = fail(no_thread.code());
    }
    is_putting_ = false;
    if (!written) {
        has_failed_ = true;
        co_return written;
    }
    if (!appends_) stored_.push_back({.at = at, .end = 0});
    stored_.back().end += count;
    bytes_ += count;
    appends_ = false;
    co_return written;
}

task<> spool_queue::clear() {
    auto empty_file = [](const std::shared_ptr<shared_state>& of) { return of->file.clear(); };
    is_clearing_ = true;
    stored_.clear();
    free_.clear();
    taken_ = loaded_begin_ = loaded_end_ = 0;
    result<> cleared;
    try {
        cleared = co_await run_blocking(empty_file, on_);
    } catch (const std::system_error& no_thread) {
        cleared = fail(no_thread.code());
    }
    is_clearing_ = false;
    if (!cleared) {
        was_not_cleared_ = true;
        for (std::uint64_t each = 0; each < blocks_in_file_; ++each)
            free_.push_back(each);
        co_return;
    }
    blocks_in_file_ = 0;
    on_->on_disk.shrink(on_->on_disk.bytes());
}

mutable_buffer spool_queue::memory_to_load() {
    scratch& out = on_->out;
    if (out.size() < spool_block) {
        const bool is_large = on_->in_memory.grow(spool_block);
        if (is_large) {
            out = scratch::borrow(spool_block);
        } else if (out.size() == 0) {
            out = scratch::borrow(least_load);
        }
    }
    return out;
}

void spool_queue::release_loaded() noexcept {
    if (on_->in_memory.bytes() == 0) return;
    on_->out = {};
    on_->in_memory.shrink(on_->in_memory.bytes());
}

task<result<const_buffer>> spool_queue::front() {
    if (taken_ == loaded_end_) {
        const std::size_t most = memory_to_load().size();
        const std::size_t begin = taken_;
        const std::size_t end = std::min(begin + most, stored_.front().end);
        auto read = [](const std::shared_ptr<shared_state>& from, std::uint64_t where,
                       std::size_t bytes) {
            return from->file.read(where, {from->out.data(), bytes});
        };
        result<> filled;
        try {
            filled = co_await run_blocking(read, on_, stored_.front().at * spool_block + begin,
                                           end - begin);
        } catch (const std::system_error& no_thread) {
            filled = fail(no_thread.code());
        }
        if (!filled) co_return fail(filled);
        loaded_begin_ = begin;
        loaded_end_ = end;
    }
    co_return const_buffer{on_->out.data() + (taken_ - loaded_begin_), loaded_end_ - taken_};
}

void spool_queue::drop(std::size_t count) noexcept {
    taken_ += count;
    bytes_ -= count;
    if (empty()) release_loaded();
    if (taken_ != stored_.front().end || (stored_.size() == 1 && appends_)) return;
    free_.push_back(stored_.front().at);
    stored_.pop_front();
    taken_ = loaded_begin_ = loaded_end_ = 0;
}

} // namespace simplenet::v0::http::detail
