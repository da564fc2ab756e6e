#include "http/client/upload.hpp"

#include "http/codec/chunked.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/task_group.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// Of the source that leaves at once. A chunk has its line before it and its end behind it.
constexpr std::size_t piece = std::size_t{32} * 1024;
constexpr std::size_t block_size = longest_chunk_head + piece + chunk_end.size();

} // namespace

upload::upload(exchange_request asked, std::chrono::nanoseconds idle)
    : head_{std::move(asked.head)}
    , front_{head_}
    , body_{asked.body}
    , source_{asked.stream}
    , source_left_{asked.content_length}
    , source_ended_{!asked.stream}
    , is_secure_{asked.is_secure}
    , awaits_continue_{asked.expect_continue}
    , limit_{idle} {}

task<result<>> upload::run(any_stream& to) {
    for (;;) {
        if (!front_.empty() || (!body_.empty() && !awaits_continue_)) {
            const result<> sent = co_await send_some(to);
            if (!sent) co_return sent;
        } else if (may_be_unsent_) { // the source may wait for what the server says to it
            if (!to.try_write_some(const_buffer{})) {
                const result<> sent = co_await send_some(to);
                if (!sent) co_return sent;
            }
            may_be_unsent_ = false;
        } else if (is_held()) {
            co_return result<>{};
        } else if (source_ended_) {
            complete();
            co_return result<>{};
        } else {
            const result<> read = co_await read_source();
            if (!read) co_return read;
        }
    }
}

void upload::try_send(any_stream& to) {
    const std::array<const_buffer, 2> now = parts();
    // Without an empty second buffer: send(2) is cheaper than sendmsg(2). run() meets any error
    // again.
    const std::span<const const_buffer> buffers{now.data(), now[1].empty() ? 1U : 2U};
    const result<std::size_t> count = to.try_write_some(buffers);
    if (!count) return;
    took(*count);
    if (may_be_unsent_ && front_.empty() && to.try_write_some(const_buffer{})) {
        may_be_unsent_ = false;
    }
    if (has_taken_all() && !may_be_unsent_) complete();
}

void upload::complete() noexcept {
    block_.release();
    complete_ = over_ = true;
}

void upload::took(std::size_t count) noexcept {
    moved_ += count;
    if (count != 0) may_be_unsent_ = is_secure_;
    const std::size_t of_front = std::min(count, front_.size());
    front_ = front_.subspan(of_front);
    body_ = body_.subspan(count - of_front);
}

task<result<>> upload::send_some(any_stream& to) {
    const std::array<const_buffer, 2> now = parts();
    const result<std::size_t> count = co_await limit_.write(to, now);
    if (!count) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        if (!within.stopped()) {
            over_ = true;
            if (!is_late()) write_failure_ = count.error();
        }
        co_return fail(count);
    }
    took(*count);
    co_return result<>{};
}

task<result<>> upload::read_source() {
    if (source_left_ == std::uint64_t{0}) {
        source_ended_ = true;
        co_return result<>{};
    }
    if (block_.size() == 0) block_ = scratch::borrow(block_size);
    std::byte* const data = block_.data() + longest_chunk_head;
    const auto most =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece, source_left_.value_or(piece)));
    task<result<std::size_t>> reading = source_.read_some({data, most});
    const result<std::size_t> count = co_await std::move(reading);
    if (!count) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        if (within.stopped()) co_return fail(count);
        const bool is_end = count.error() == simplenet::errc::end_of_stream;
        if (is_end && !source_left_) {
            front_ = last_chunk;
            source_ended_ = true;
            co_return result<>{};
        }
        source_failure_ = is_end ? std::make_error_code(std::errc::message_size) : count.error();
        over_ = true;
        co_return fail(count);
    }
    SIMPLENET_EXPECTS(*count != 0 && *count <= most, "read_some() of a body gave no bytes");
    if (source_left_) {
        *source_left_ -= *count;
        front_ = {data, *count};
        co_return result<>{};
    }
    std::array<char, longest_chunk_head> line;
    const std::size_t size = write_chunk_head(line.data(), *count);
    std::memcpy(data - size, line.data(), size);
    std::memcpy(data + *count, chunk_end.data(), chunk_end.size());
    front_ = {data - size, size + *count + chunk_end.size()};
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
