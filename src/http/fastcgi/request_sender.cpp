#include "http/fastcgi/request_sender.hpp"

#include "http/fastcgi/record.hpp"

#include <simplenet/coro/task_group.hpp>

#include <algorithm>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

using fastcgi::header_size;
using fastcgi::record_type;

/// Of the body, in one record.
constexpr std::size_t longest_content = std::size_t{32} * 1024;

} // namespace

void request_sender::try_send(any_stream& to) {
    // An error is found again by run().
    if (const result<std::size_t> count = to.try_write_some(front_)) took(*count);
}

void request_sender::took(std::size_t count) noexcept {
    has_sent_ = has_sent_ || count != 0;
    front_ = front_.subspan(count);
    look_for_end();
}

void request_sender::look_for_end() noexcept {
    if (!front_.empty() || source_) return;
    block_ = {};
    complete_ = over_ = true;
}

task<result<>> request_sender::run(any_stream& to) {
    while (!over_) {
        if (front_.empty()) {
            const result<> read = co_await read_source();
            if (!read) co_return read;
            continue;
        }
        const result<std::size_t> count = co_await limit_.write(to, {&front_, 1});
        if (!count) {
            const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
            if (!within.stopped()) {
                over_ = true;
                if (!is_late()) write_failure_ = count.error();
            }
            co_return fail(count);
        }
        took(*count);
    }
    co_return result<>{};
}

task<result<>> request_sender::read_source() {
    if (block_.size() == 0) block_ = scratch::borrow(header_size + longest_content + header_size);
    auto* const record = reinterpret_cast<char*>(block_.data());
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(longest_content, left_));
    const mutable_buffer into{record + header_size, most};
    has_read_ = true;
    task<result<std::size_t>> reading = source_.read_some(into);
    const result<std::size_t> count = co_await std::move(reading);
    if (!count) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        if (!within.stopped()) {
            over_ = true;
            source_failure_ = count.error() == simplenet::errc::end_of_stream
                                  ? std::make_error_code(std::errc::message_size)
                                  : count.error();
        }
        co_return fail(count);
    }
    left_ -= *count;
    char* end = fastcgi::write_header(record, record_type::in, *count) + *count;
    if (left_ == 0) {
        end = fastcgi::write_header(end, record_type::in, 0);
        source_ = {};
    }
    front_ = {record, static_cast<std::size_t>(end - record)};
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
