#include "http/gateway/spool_queue.hpp"

#include <simplenet/runtime/run_blocking.hpp>

#include <algorithm>
#include <limits>
#include <system_error>

namespace simplenet::v0::http::detail {

bool disk_budget::take(std::uint64_t bytes, std::uint64_t has) noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes && left - bytes >= has) {
        if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    }
    return false;
}

std::shared_ptr<disk_budget> disk_budget_for(std::uint64_t each) {
    constexpr std::uint64_t answers = 16;
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return std::make_shared<disk_budget>(each > most / answers ? most : each * answers);
}

mutable_buffer spool_queue::room() {
    if (most_ == 0 || has_failed_) return {};
    if (empty()) stored_ = taken_ = loaded_ = 0; // the file need not grow
    const std::uint64_t at = stored_ % most_;
    const std::uint64_t free = most_ - (stored_ - taken_);
    const std::uint64_t size = std::min({std::uint64_t{spool_block}, free, most_ - at});
    if (size < least_room && size != most_ - at) return {}; // not for every few bytes
    if (!on_) on_ = std::make_shared<shared_state>(directory_, budget_);
    if (at + size > on_->reserved) {
        const std::uint64_t more = std::min(most_, at + spool_block) - on_->reserved;
        if (budget_ && !budget_->take(more, on_->reserved)) return {};
        on_->reserved += more;
    }
    if (on_->in.size() == 0) on_->in = scratch::borrow(spool_block);
    return {on_->in.data(), static_cast<std::size_t>(size)};
}

task<result<>> spool_queue::put(std::size_t count) {
    auto write = [](const std::shared_ptr<shared_state>& to, std::uint64_t at, std::size_t size) {
        return to->file.write(at, {to->in.data(), size});
    };
    result<> written;
    try {
        written = co_await run_blocking(write, on_, stored_ % most_, count);
    } catch (const std::system_error& no_thread) {
        written = fail(no_thread.code());
    }
    if (written) {
        stored_ += count;
    } else {
        has_failed_ = true;
    }
    co_return written;
}

task<> spool_queue::clear() {
    auto empty_file = [](const std::shared_ptr<shared_state>& of) { return of->file.clear(); };
    stored_ = taken_ = loaded_ = 0;
    try {
        const result<> cleared = co_await run_blocking(empty_file, on_);
        if (!cleared) co_return;
        const std::uint64_t back = std::exchange(on_->reserved, 0);
        if (budget_) budget_->give_back(back);
    } catch (const std::system_error&) { // no thread: the file stays as it is
    }
}

task<result<const_buffer>> spool_queue::front() {
    if (taken_ == loaded_) {
        if (on_->out.size() == 0) on_->out = scratch::borrow(spool_block);
        const std::uint64_t at = taken_ % most_;
        const auto size = static_cast<std::size_t>(
            std::min({std::uint64_t{spool_block}, stored_ - taken_, most_ - at}));
        auto read = [](const std::shared_ptr<shared_state>& from, std::uint64_t where,
                       std::size_t bytes) {
            return from->file.read(where, {from->out.data(), bytes});
        };
        result<> filled;
        try {
            filled = co_await run_blocking(read, on_, at, size);
        } catch (const std::system_error& no_thread) {
            filled = fail(no_thread.code());
        }
        if (!filled) co_return fail(filled);
        loaded_ = taken_ + size;
        out_end_ = size;
    }
    const auto left = static_cast<std::size_t>(loaded_ - taken_);
    co_return const_buffer{on_->out.data() + (out_end_ - left), left};
}

} // namespace simplenet::v0::http::detail
