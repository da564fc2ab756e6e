// Reading the body of a request.

#include "http/fields_access.hpp"
#include "http/gathered_body.hpp"
#include "http/marked.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace simplenet::v0::http::detail {

task<result<std::size_t>> exchange::read_some(mutable_buffer into) {
    SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
    SIMPLENET_EXPECTS(!reading_, "a second read of a request while one is in flight");
    const marked in_flight{reading_};
    co_return co_await read_body(into);
}

task<result<std::string>> exchange::read_all(std::size_t limit) {
    SIMPLENET_EXPECTS(!reading_, "a second read of a request while one is in flight");
    const marked in_flight{reading_};
    const bool has_length = framing_.kind == framing::kind::length;
    bool is_too_long = has_length && !body_failed_ && body_left_ > limit;
    gathered_body body{limit};
    while (!is_too_long) {
        const auto left = has_length ? std::optional{body_left_} : std::nullopt;
        const result<std::size_t> count = co_await read_body(body.room(left));
        body.took(count.value_or(0));
        if (!count && count.error() == simplenet::errc::end_of_stream) co_return body.take();
        if (!count) co_return fail(count);
        is_too_long = body.is_too_long();
    }
    co_return fail(fail_body(make_error_code(simplenet::errc::limit_exceeded), 413));
}

task<result<std::size_t>> exchange::read_body(mutable_buffer into) {
    if (body_failed_) co_return fail(body_error_);
    if (body_ended_) co_return fail(simplenet::errc::end_of_stream);
    // Nearly always choose_handler() has refused it; a handler may have set another limit. What is
    // dropped has its own.
    if (!draining_ && body_limit_ != 0 && framing_.length > body_limit_) {
        co_return fail(fail_body(errc::body_too_large, 413));
    }
    if (framing_.kind == framing::kind::chunked) co_return co_await read_chunked(into);
    co_return co_await read_plain(into);
}

task<result<std::size_t>> exchange::read_plain(mutable_buffer into) {
    into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_)));
    std::size_t count = 0;
    if (!input_.empty()) {
        count = std::min(into.size(), input_.bytes().size());
        std::memcpy(into.data(), input_.bytes().data(), count);
        input_.consume(count);
    } else {
        const result<std::size_t> read = co_await wait_into(into);
        if (!read) co_return read;
        count = *read;
    }
    awaits_continue_ = false;
    body_left_ -= count;
    body_ended_ = body_left_ == 0;
    co_return count;
}

task<result<std::size_t>> exchange::read_chunked(mutable_buffer into) {
    if (!chunks_) {
        chunks_.emplace(chunked_limits{limits_->chunk_extensions, limits_->header_bytes,
                                       limits_->header_count});
    }
    for (;;) {
        const std::uint64_t rest = chunks_->rest_of_chunk();
        if (rest != 0 && input_.empty()) {
            // Straight into the memory of the handler.
            const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(rest, into.size()));
            const result<std::size_t> read = co_await wait_into(into.first(most));
            if (!read) co_return read;
            chunks_->skip(*read);
            co_return read;
        }
        if (input_.empty()) {
            const result<> more = co_await wait_for_input();
            if (!more) co_return fail(more);
        }
        awaits_continue_ = false;
        const result<std::size_t> taken = take_chunked(into);
        if (!taken || *taken != 0) co_return taken;
    }
}

result<std::size_t> exchange::take_chunked(mutable_buffer into) {
    using decoded = chunked_decoder::step;
    const decoded step = chunks_->next_into(input_.bytes(), into);
    if (!draining_ && body_limit_ != 0 &&
        chunks_->decoded() + chunks_->rest_of_chunk() > body_limit_) {
        return fail(fail_body(errc::body_too_large, 413));
    }
    input_.consume(step.consumed);
    switch (step.kind) {
    case decoded::kind::need_more:
        return 0;
    case decoded::kind::data:
        return step.data.size();
    case decoded::kind::end:
        body_ended_ = true;
        fields_access::borrow(request_.trailers_, chunks_->trailer_text(), chunks_->trailers());
        return fail(simplenet::errc::end_of_stream);
    case decoded::kind::refused:
        break;
    }
    const unsigned status = chunks_->status();
    return fail(fail_body(status == 431 ? errc::header_too_large : errc::bad_request, status));
}

std::error_code exchange::fail_body(std::error_code why, unsigned status) noexcept {
    body_failed_ = true;
    body_error_ = why;
    body_status_ = status;
    return why;
}

// --- waiting -------------------------------------------------------------------------------------

std::chrono::nanoseconds exchange::body_idle() const noexcept {
    const std::chrono::nanoseconds idle = limits_->body_idle;
    const std::chrono::nanoseconds linger = limits_->linger_idle;
    constexpr auto none = std::chrono::nanoseconds::zero();
    if (!draining_ || linger <= none) return idle;
    return idle <= none ? linger : std::min(idle, linger);
}

task<result<>> exchange::before_waiting() {
    if (awaits_continue_ && stage_ == stage::open) {
        if (!output_.empty() && !output_.has_room(64)) {
            const result<> left = co_await write_out({});
            if (!left) co_return left;
        }
        output_.append("HTTP/1.1 100 Continue\r\n\r\n");
    }
    awaits_continue_ = false;
    // A write in progress takes the output along; whoever reads must not wait for it, since the
    // client may read nothing until it has sent its body.
    if (writing_.locked()) co_return result<>{};
    // The client may wait for answers to earlier requests.
    co_return co_await write_out({});
}

task<result<std::size_t>> exchange::wait_into(mutable_buffer into) {
    const result<> ready = co_await before_waiting();
    if (!ready) co_return fail(ready);
    const auto begin = std::chrono::steady_clock::now();
    task<result<std::size_t>> reading = transport_.read_some(into);
    const result<std::size_t> count = co_await with_timeout(
        std::move(reading), body_pace_.allowance(body_idle(), limits_->minimum_rate));
    body_pace_.waited(std::chrono::steady_clock::now() - begin);
    if (!count) co_return fail(co_await body_failure(count.error()));
    body_pace_.moved(*count);
    co_return count;
}

task<result<>> exchange::wait_for_input() {
    const result<> ready = co_await before_waiting();
    if (!ready) co_return ready;
    const auto begin = std::chrono::steady_clock::now();
    task<result<received>> receiving = transport_.receive();
    result<received> bytes = co_await with_timeout(
        std::move(receiving), body_pace_.allowance(body_idle(), limits_->minimum_rate));
    body_pace_.waited(std::chrono::steady_clock::now() - begin);
    if (!bytes) co_return fail(co_await body_failure(bytes.error()));
    body_pace_.moved(bytes->size());
    input_.adopt(*std::move(bytes));
    co_return result<>{};
}

task<std::error_code> exchange::body_failure(std::error_code why) {
    // A stop that comes at the same time changes nothing: to the handler, the end of the connection
    // would be the end of the body.
    if (why == simplenet::errc::end_of_stream) co_return fail_body(errc::incomplete_message, 0);
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    if (within.stopped()) co_return why; // nothing is lost
    co_return fail_body(why, why == simplenet::errc::deadline_exceeded ? 408 : 0);
}

} // namespace simplenet::v0::http::detail
