#include "http/gateway/read_ahead.hpp"

#include <simplenet/coro/task_group.hpp>

#include <utility>

namespace simplenet::v0::http::detail {

namespace {

// What one write_some() of a response takes at most.
constexpr std::size_t read_ahead_block = std::size_t{16} * 1024;

} // namespace

task<result<>> read_ahead::run() {
    auto body = [this](task_group& group) -> task<result<>> {
        group.spawn(read());
        return write();
    };
    co_return co_await with_group(body);
}

task<result<>> read_ahead::read() {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    for (;;) {
        block* const into = block_with_room();
        if (into == nullptr) {
            has_room_.reset();
            const result<> waited = co_await has_room_.wait();
            if (!waited) co_return waited;
            continue;
        }
        const mutable_buffer room{into->memory.data() + into->end, into->memory.size() - into->end};
        const result<std::size_t> count = co_await from_.read_some(room);
        if (count) {
            into->end += *count;
            has_bytes_.set();
            continue;
        }
        if (within.stopped()) co_return fail(count);
        if (count.error() != simplenet::errc::end_of_stream) failure_ = count.error();
        ended_ = true;
        has_bytes_.set();
        co_return result<>{};
    }
}

read_ahead::block* read_ahead::block_with_room() {
    if (!blocks_.empty()) {
        block& last = blocks_.back();
        if (last.begin == last.end) last.begin = last.end = 0;
        if (last.end != last.memory.size()) return &last;
    }
    if (blocks_.size() * read_ahead_block >= most_ && !blocks_.empty()) return nullptr;
    blocks_.push_back({.memory = scratch::borrow(read_ahead_block)});
    return &blocks_.back();
}

void read_ahead::drop_written() noexcept {
    while (!blocks_.empty() && blocks_.front().begin == blocks_.front().end) {
        if (blocks_.size() == 1 && !ended_) break; // the reader has it, or takes it again
        blocks_.pop_front();
    }
}

task<result<>> read_ahead::write() {
    for (;;) {
        drop_written();
        if (blocks_.empty() || blocks_.front().begin == blocks_.front().end) {
            if (ended_) break;
            has_bytes_.reset();
            const result<> waited = co_await has_bytes_.wait();
            if (!waited) co_return waited;
            continue;
        }
        // The reader appends to the same block at most, behind these bytes.
        block& front = blocks_.front();
        const const_buffer bytes{front.memory.data() + front.begin, front.end - front.begin};
        const result<std::size_t> count = co_await to_.write_some(bytes);
        if (!count) co_return fail(count);
        front.begin += *count;
        has_room_.set();
    }
    if (failure_) co_return fail(failure_);
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
