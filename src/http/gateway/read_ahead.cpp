#include "http/gateway/read_ahead.hpp"

#include "http/marked.hpp"
#include "http/server/exchange.hpp"
#include "http/server/transport.hpp"
#include "http/unacknowledged_bytes.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <algorithm>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

// What one write_some() of a response takes at most.
constexpr std::size_t read_ahead_block = std::size_t{16} * 1024;

ignored_time::time_point now() noexcept {
    return simplenet::detail::timed_queue::present();
}

} // namespace

void read_ahead::begin_with(scratch memory, std::size_t count) {
    blocks_.push_back({.memory = std::move(memory), .begin = 0, .end = count});
}

task<result<>> read_ahead::run() {
    scope_ = &co_await simplenet::detail::own_scope{};
    auto body = [this](task_group& group) -> task<result<>> {
        copying_ = &group;
        group.spawn(read());
        return write();
    };
    const result<> copied = co_await with_group(body);
    watch_.cancel();
    // A group that was stopped reports no error.
    if (!gives_way_ || (is_whole_ && !failure_)) co_return copied;
    is_reader_failure_ = static_cast<bool>(failure_);
    if (is_reader_failure_) co_return fail(failure_);
    is_held_ = true;
    co_return fail(simplenet::errc::deadline_exceeded);
}

task<result<>> read_ahead::read() {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    for (bool has_yielded = false;;) {
        if (spool_.empty() && !has_yielded && block_with_room() == nullptr) {
            // Lets the writer free a block before the disk is used.
            has_yielded = true;
            co_await yield();
            continue;
        }
        has_yielded = false;
        const mutable_buffer into = room();
        if (into.empty()) {
            // The time before does not count: the client kept nobody waiting.
            if (!waits_) ignored_.begin(now(), acknowledged());
            if (!waits_ && !watch_.armed()) slow_.begin(now(), acknowledged());
            waits_ = true;
            const result<> waited = co_await wait_for_client();
            if (!waited) co_return waited;
            continue;
        }
        waits_ = false;
        const result<std::size_t> count = co_await from_.read_some(into);
        if (count) {
            const result<> kept = co_await keep(*count);
            if (!kept) co_return kept;
            has_bytes_.set();
            continue;
        }
        if (within.stopped()) co_return fail(count);
        if (count.error() != simplenet::errc::end_of_stream) failure_ = count.error();
        ended_ = true;
        spool_.end_puts();
        has_bytes_.set();
        co_return result<>{};
    }
}

void read_ahead::watch_room() noexcept {
    if (!limits_.shared.disk || !limits_.is_wanted || watch_.armed()) return;
    begin_measuring();
    look_again();
}

void read_ahead::look_again() noexcept {
    using simplenet::detail::timed_queue;
    timed_queue::of(*scope_).timers.insert_after(watch_, longest_step(now()));
}

void read_ahead::make_room_for_others() noexcept {
    if (!writes_) return;       // nor may the group be there
    if (spool_.empty()) return; // watched again from the next put() on
    note_taken();
    const bool holds_backend = waits_ && has_held_too_long(now());
    if (!holds_backend && !is_in_the_way(now())) return look_again();
    gives_way_ = true;
    copying_->request_stop();
}

mutable_buffer read_ahead::room() {
    into_ = spool_.empty() ? block_with_room() : nullptr;
    if (into_ == nullptr) return spool_.room();
    return {into_->memory.data() + into_->end, into_->memory.size() - into_->end};
}

task<result<>> read_ahead::keep(std::size_t count) {
    if (into_ != nullptr) {
        into_->end += count;
        co_return result<>{};
    }
    if (spool_.empty() && !has_blocks()) { // the client has caught up meanwhile
        const std::size_t shared = in_memory_.grow(spool_block) ? spool_block : 0;
        blocks_.push_back({.memory = spool_.release(), .begin = 0, .end = count, .shared = shared});
        co_return result<>{};
    }
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const result<> stored = co_await spool_.put(count);
    if (stored) watch_room();
    if (stored || within.stopped()) co_return stored;
    // These bytes follow those that are in the file.
    disk_failure_ = stored.error();
    begin_measuring();
    while (!spool_.empty()) {
        const result<> waited = co_await wait_for_client();
        if (!waited) co_return waited;
    }
    blocks_.push_back({.memory = spool_.release(), .begin = 0, .end = count});
    co_return result<>{};
}

task<result<>> read_ahead::wait_for_client() {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    has_room_.reset();
    note_taken();
    const result<> taken = co_await with_timeout(has_room_.wait(), longest_step(now()));
    if (taken || within.stopped()) co_return taken;
    note_taken();
    if (has_held_too_long(now())) {
        is_held_ = true;
        co_return taken;
    }
    co_return result<>{};
}

std::chrono::nanoseconds read_ahead::longest_step(ignored_time::time_point now) const noexcept {
    std::chrono::nanoseconds step = std::chrono::seconds{1};
    if (!ignored_.is_offered()) return step;
    const std::chrono::nanoseconds ignored = ignored_.until(now);
    if (limits_.hold > ignored) step = std::min(step, limits_.hold - ignored);
    if (limits_.is_wanted) step = std::min(step, limits_.hold_while_wanted);
    return step;
}

bool read_ahead::is_in_the_way(ignored_time::time_point now) const noexcept {
    return limits_.shared.disk && limits_.shared.disk->is_asked_by_less(now, spool_.reserved()) &&
           slow_.until(now) >= limits_.hold_while_wanted;
}

bool read_ahead::has_held_too_long(ignored_time::time_point now) const noexcept {
    if (limits_.is_free && limits_.is_free()) return false;
    const std::chrono::nanoseconds ignored = ignored_.until(now);
    if (limits_.hold > ignored.zero() && ignored >= limits_.hold) return true;
    const std::chrono::nanoseconds wanted = limits_.hold_while_wanted;
    // Asked each time, because it looks for those who were there when it was asked before.
    if (!limits_.is_wanted || !limits_.is_wanted(now, wanted)) return false;
    if (spool_.lacks_disk()) limits_.shared.disk->ask_for_room(now, spool_.reserved());
    return slow_.until(now) >= wanted;
}

std::int64_t read_ahead::enough() const noexcept {
    // Else a few clients that take a little could keep all of the disk, and the backends.
    using seconds = std::chrono::duration<double>;
    const seconds all{limits_.drained_within};
    const double part = seconds{limits_.hold_while_wanted} / all;
    return std::max(ignored_time::something,
                    static_cast<std::int64_t>(static_cast<double>(spool_.size()) * part));
}

void read_ahead::begin_measuring() noexcept {
    const std::int64_t total = acknowledged();
    ignored_.begin(now(), total);
    slow_.begin(now(), total);
}

void read_ahead::note_offered() noexcept {
    ignored_.offered(now());
    slow_.offered(now());
}

void read_ahead::note_answered() noexcept {
    ignored_.answered(now());
    slow_.answered(now());
}

void read_ahead::note_taken() noexcept {
    const std::int64_t total = acknowledged();
    ignored_.taken(now(), total);
    slow_.taken(now(), total, enough());
}

std::int64_t read_ahead::acknowledged() const noexcept {
    const auto written = static_cast<std::int64_t>(written_);
    const bool has_limit = limits_.is_wanted || limits_.hold > std::chrono::nanoseconds::zero();
    if (!has_limit) return written; // nobody asks
    return written - unacknowledged_bytes(exchange::of(to_).native_handle());
}

read_ahead::block* read_ahead::block_with_room() {
    if (!blocks_.empty()) {
        block& last = blocks_.back();
        if (last.begin == last.end) {
            last.begin = last.end = 0;
            // The memory of the file is needed no more.
            if (blocks_.size() == 1 && last.memory.size() > read_ahead_block) {
                in_memory_.shrink(std::exchange(last.shared, 0));
                last.memory = scratch::borrow(read_ahead_block);
            }
        }
        if (last.end != last.memory.size()) return &last;
    }
    const bool is_shared = !blocks_.empty();
    if (is_shared) {
        if (blocks_.size() * read_ahead_block >= limits_.memory) return nullptr;
        if (!in_memory_.grow(read_ahead_block)) return nullptr;
    }
    blocks_.push_back(
        {.memory = scratch::borrow(read_ahead_block), .shared = is_shared ? read_ahead_block : 0});
    return &blocks_.back();
}

void read_ahead::drop_written() noexcept {
    while (!blocks_.empty() && blocks_.front().begin == blocks_.front().end) {
        if (blocks_.size() == 1 && !ended_) break; // the reader has it, or takes it again
        in_memory_.shrink(blocks_.front().shared);
        blocks_.pop_front();
        // The first block is not counted.
        if (!blocks_.empty() && blocks_.front().shared == read_ahead_block) {
            in_memory_.shrink(std::exchange(blocks_.front().shared, 0));
        }
    }
}

task<result<>> read_ahead::write() {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const marked in_progress{writes_};
    if (sends_head_first_) {
        note_offered();
        const result<> sent = co_await exchange::of(to_).send_head();
        note_answered();
        if (!sent) co_return sent;
    }
    for (;;) {
        drop_written();
        block* const front = has_blocks() ? &blocks_.front() : nullptr;
        const_buffer bytes;
        if (front != nullptr) {
            // The reader appends to the same block at most, behind these bytes.
            bytes = {front->memory.data() + front->begin, front->end - front->begin};
        } else if (!spool_.empty()) {
            const result<const_buffer> stored = co_await spool_.front();
            if (!stored) {
                is_lost_ = !within.stopped();
                co_return fail(stored);
            }
            bytes = *stored;
        } else if (ended_) {
            break;
        } else if (spool_.is_worth_clearing()) {
            co_await spool_.clear();
            has_room_.set();
            continue;
        } else {
            has_bytes_.reset();
            const result<> waited = co_await has_bytes_.wait();
            if (!waited) co_return waited;
            continue;
        }
        note_offered();
        const result<std::size_t> count = co_await to_.write_some(bytes);
        note_answered();
        if (!count) co_return fail(count);
        written_ += *count;
        if (front != nullptr) {
            front->begin += *count;
        } else {
            spool_.drop(*count);
        }
        has_room_.set();
    }
    is_whole_ = true;
    is_reader_failure_ = static_cast<bool>(failure_);
    if (is_reader_failure_) co_return fail(failure_);
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
