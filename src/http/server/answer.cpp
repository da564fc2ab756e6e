// Writing the answer to a request.

#include "http/codec/date.hpp"
#include "http/codec/list.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/status.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// Bytes of a head beside the fields of the handler and the content type: the status line, Date,
/// Content-Length, Connection, Transfer-Encoding, Vary, Content-Encoding.
constexpr std::size_t own_head = 256;

char* put(char* at, std::string_view text) noexcept {
    std::memcpy(at, text.data(), text.size());
    return at + text.size();
}

[[nodiscard]] std::size_t size_of(std::span<const const_buffer> buffers) noexcept {
    std::size_t size = 0;
    for (const const_buffer& each : buffers)
        size += each.size();
    return size;
}

} // namespace

// --- the head ------------------------------------------------------------------------------------

std::optional<std::string_view> exchange::find_field(std::string_view name) const noexcept {
    return stage_ == stage::open ? fields_.find(name) : std::nullopt;
}

void exchange::reset_answer() noexcept {
    if (stage_ != stage::open) return;
    forget_answer();
    status_ = 200;
}

void exchange::set_status(unsigned code) noexcept {
    if (stage_ == stage::open) status_ = code;
}

void exchange::set_field(std::string_view name, std::string_view value, bool replaces) {
    if (stage_ != stage::open) return;
    value = trim_blanks(value);
    if (!is_token(name) || !valid_field_value(value) || iequals(name, "Transfer-Encoding")) {
        bad_field_ = true;
        return;
    }
    if (iequals(name, "Content-Length")) {
        std::uint64_t length = 0;
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), length);
        if (error != std::errc{} || end != value.data() + value.size() ||
            (!replaces && announced_ && *announced_ != length)) {
            bad_field_ = true;
        }
        announced_ = length;
        return;
    }
    if (iequals(name, "Connection")) {
        if (iequals(value, "close")) {
            closing_ = true;
            return;
        }
        if (iequals(value, "keep-alive")) return;
        if (!iequals(value, "upgrade")) bad_field_ = true; // of a 426: RFC 9110, section 7.8
    }
    if (replaces) {
        fields_.set(name, value);
    } else {
        fields_.add(name, value);
    }
    note_field(name);
}

void exchange::add_parsed_field(std::string_view name, std::string_view value) {
    if (stage_ != stage::open) return;
    fields_.add(name, value);
    note_field(name);
}

void exchange::note_field(std::string_view name) noexcept {
    if (iequals(name, "Date")) has_date_ = true;
    if (iequals(name, "Content-Type")) has_type_ = true;
}

bool exchange::has_bad_head() const noexcept {
    return bad_field_ || status_ < 200 || status_ > 599 || compression_.level < 1 ||
           compression_.level > 9;
}

bool exchange::forbids_body() const noexcept {
    return status_ == 204 || status_ == 205 || status_ == 304;
}

std::size_t exchange::head_size(std::string_view type) const noexcept {
    return own_head + fields_.lines().size() + type.size();
}

bool exchange::is_last(bool complete) const noexcept {
    if (closing_ || !framing_.keep_alive) return true;
    if (limits_->requests_per_connection != 0 &&
        connection_.requests >= limits_->requests_per_connection) {
        return true;
    }
    // A client that was not told to continue may send the body or not; see drain_body() for the
    // rest.
    if (complete && !body_ended_ &&
        (awaits_continue_ || body_failed_ || body_left_ > most_drained)) {
        return true;
    }
    return simplenet::detail::should_connection_end(*scope_);
}

void exchange::append_head(const head_kind& kind) {
    char* const begin = output_.room(head_size(kind.type));
    // Texts of a known size cost no call of memcpy().
    char* at = put(begin, "HTTP/1.1 ");
    *at++ = static_cast<char>('0' + status_ / 100);
    *at++ = static_cast<char>('0' + status_ / 10 % 10);
    *at++ = static_cast<char>('0' + status_ % 10);
    *at++ = ' ';
    at = put(at, reason_of(status_));
    at = put(at, "\r\n");
    if (!has_date_) {
        at = put(at, "Date: ");
        at = put(at, {date_now().data(), date_size});
        at = put(at, "\r\n");
    }
    if (!fields_.empty()) at = put(at, fields_.lines());
    if (!kind.type.empty() && !has_type_) {
        at = put(at, "Content-Type: ");
        at = put(at, kind.type);
        at = put(at, "\r\n");
    }
    if (kind.length && status_ != 204 && status_ != 304) {
        at = put(at, "Content-Length: ");
        at = std::to_chars(at, at + 20, *kind.length).ptr;
        at = put(at, "\r\n");
    }
    if (kind.chunked) at = put(at, "Transfer-Encoding: chunked\r\n");
    if (varies_) at = put(at, "Vary: Accept-Encoding\r\n");
    if (kind.gzip) at = put(at, "Content-Encoding: gzip\r\n");
    if (closing_) {
        at = put(at, "Connection: close\r\n");
    } else if (request_.version_ == 10) {
        at = put(at, "Connection: keep-alive\r\n");
    }
    at = put(at, "\r\n");
    output_.took(static_cast<std::size_t>(at - begin));
}

// --- a whole answer ------------------------------------------------------------------------------

now_or_task<result<>> exchange::send(std::string_view type, const_buffer body) {
    if (stage_ != stage::open) return result<>{fail(std::errc::operation_not_permitted)};
    if (has_bad_head() || !valid_field_value(type) || (forbids_body() && !body.empty()) ||
        (announced_ && *announced_ != body.size())) {
        return result<>{fail(std::errc::invalid_argument)};
    }
    if (takes_gzip(type, body.size())) return send_compressed(type, body);
    if (body.size() <= output::gathers && output_.has_room(head_size(type) + body.size())) {
        append_answer(type, body);
        return result<>{};
    }
    return send_large(type, body);
}

void exchange::append_answer(std::string_view type, const_buffer body) {
    closing_ = is_last(true);
    const std::uint64_t length = head_only_ && announced_ ? *announced_ : body.size();
    append_head({.length = length, .type = type});
    if (!head_only_ && !body.empty()) {
        std::memcpy(output_.room(body.size()), body.data(), body.size());
        output_.took(body.size());
        body_bytes_ += body.size();
    }
    complete();
}

void exchange::complete() noexcept {
    stage_ = stage::complete;
    missed_ = false;
    if (handler_waits_ && (!output_.empty() || unsettled_)) arm_late_flush();
}

task<result<>> exchange::send_large(std::string_view type, const_buffer body) {
    const result<> room = co_await make_room(head_size(type));
    if (!room) co_return room;
    if (body.size() <= output::gathers && output_.has_room(head_size(type) + body.size())) {
        append_answer(type, body);
        co_return result<>{};
    }
    closing_ = is_last(true);
    append_head({.length = body.size(), .type = type});
    stage_ = stage::sending;
    if (!head_only_) {
        const result<> sent = co_await write_out(body);
        if (!sent) co_return sent;
        body_bytes_ += body.size();
    }
    complete();
    co_return result<>{};
}

// --- a streamed answer ---------------------------------------------------------------------------

task<result<>> exchange::begin_streaming(std::string_view type, bool compressed) {
    if (has_bad_head()) co_return fail(std::errc::invalid_argument);
    if (forbids_body()) co_return fail(std::errc::message_size);
    const result<> room = co_await make_room(head_size(type));
    if (!room) co_return room;
    closing_ = is_last(false);
    compresses_ = compressed;
    answer_left_ = announced_.value_or(0);
    std::optional<std::uint64_t> length;
    if (!compressed) length = announced_; // it is that of the plain body
    if (length) {
        body_end_ = body_end::length;
    } else if (request_.version_ == 10) {
        body_end_ = body_end::close;
        closing_ = true;
    } else {
        body_end_ = body_end::chunks;
    }
    append_head({.length = length,
                 .chunked = body_end_ == body_end::chunks,
                 .gzip = compressed,
                 .type = type});
    stage_ = stage::streaming;
    co_return result<>{};
}

task<result<>> exchange::send_head() {
    if (stage_ != stage::open) co_return fail(std::errc::operation_not_permitted);
    const result<> begun = co_await begin_streaming({}, takes_gzip({}, announced_));
    if (!begun) co_return begun;
    co_return co_await write_out({});
}

task<result<std::size_t>> exchange::write_one(const_buffer from) {
    co_return co_await write_some({&from, 1});
}

task<result<std::size_t>> exchange::write_some(std::span<const const_buffer> from) {
    std::size_t count = size_of(from);
    if (count == 0) co_return std::size_t{0};
    if (stage_ == stage::complete || stage_ == stage::sending) {
        co_return fail(std::errc::operation_not_permitted);
    }
    if (stage_ == stage::open) {
        if (announced_ && count > *announced_) co_return fail(std::errc::message_size);
        const result<> begun = co_await begin_streaming({}, takes_gzip({}, announced_));
        if (!begun) co_return fail(begun);
    }
    if (announced_ && count > answer_left_) co_return fail(std::errc::message_size);
    if (head_only_) {
        answer_left_ -= announced_ ? count : 0;
        co_return count;
    }
    if (compresses_) {
        const const_buffer part =
            *std::ranges::find_if(from, [](const_buffer each) { return !each.empty(); });
        // An exception in between would leave a part behind that nobody knows of.
        stage_ = stage::sending;
        const auto taken = co_await write_compressed(part, gzip_encoder::until::flush);
        stage_ = stage::streaming;
        if (!taken) co_return taken;
        answer_left_ -= announced_ ? *taken : 0;
        missed_ = false;
        co_return taken;
    }
    count = std::min(count, output::gathers);
    const result<> room = co_await make_room(count + longest_chunk_head + chunk_end.size());
    if (!room) co_return fail(room);
    const bool in_chunks = body_end_ == body_end::chunks;
    char* const begin = output_.room(count + longest_chunk_head + chunk_end.size());
    char* at = begin;
    if (in_chunks) at += write_chunk_head(at, count);
    std::size_t left = count;
    for (const const_buffer& each : from) {
        const std::size_t part = std::min(left, each.size());
        if (part != 0) std::memcpy(at, each.data(), part);
        at += part;
        left -= part;
    }
    if (in_chunks) at = put(at, chunk_end);
    output_.took(static_cast<std::size_t>(at - begin));
    answer_left_ -= announced_ ? count : 0;
    body_bytes_ += count;
    missed_ = false;
    const result<> left_us = co_await write_out({});
    if (!left_us && broken_) co_return fail(left_us);
    co_return count; // after a stop the output has them
}

// --- what leaves ---------------------------------------------------------------------------------

task<result<>> exchange::flush() {
    co_return co_await write_out({});
}

now_or_task<result<>> exchange::make_room(std::size_t bytes) {
    if (output_.empty() || output_.has_room(bytes)) return result<>{};
    return write_for_room();
}

task<result<>> exchange::write_for_room() {
    const result<> left = co_await write_out({});
    missed_ = !left;
    co_return left;
}

// Nearly always the socket takes everything at once, and no coroutine is needed.
now_or_task<result<>> exchange::write_out(const_buffer behind) {
    // A stream that its client reads as fast would never suspend: write_some() takes turns.
    const bool is_whole = stage_ == stage::complete || stage_ == stage::open;
    if (is_whole && behind.empty() && !output_.empty() && !broken_ && !corks_ &&
        !writing_.locked()) {
        const result<> tried = try_output();
        if (!tried) return tried;
        if (output_.empty() && !unsettled_) {
            output_.release();
            return result<>{};
        }
    }
    return write_rest(behind);
}

result<> exchange::try_output() {
    const result<std::size_t> count = transport_.try_write(output_.bytes());
    if (count) {
        moved_out(*count);
    } else if (count.error() != std::errc::operation_would_block) {
        broken_ = lost_ = true;
        return fail(count);
    }
    return {};
}

void exchange::moved_out(std::size_t count) noexcept {
    output_.left(count);
    unsettled_ = transport_.secure;
}

task<result<>> exchange::write_rest(const_buffer behind) {
    std::optional<async_mutex::guard> writing = writing_.try_lock();
    if (!writing) {
        result<async_mutex::guard> granted = co_await writing_.lock();
        if (!granted) co_return fail(granted);
        writing.emplace(*std::move(granted));
    }
    if (broken_) co_return fail(std::errc::broken_pipe);
    while (!output_.empty() || !behind.empty()) {
        const std::array<const_buffer, 2> parts{output_.bytes(), behind};
        const result<std::size_t> count =
            co_await wait_for_client(transport_.write_some(parts, corks_));
        if (!count) co_return fail(co_await write_failure(count.error()));
        const std::size_t first = std::min(*count, output_.size());
        moved_out(first);
        behind = behind.subspan(*count - first);
    }
    if (unsettled_) {
        // Nearly always it has left already, and a system call to see that would cost 5 % of a
        // short answer over TLS.
        const result<> settled =
            co_await wait_for_client(transport_.settle(), patience::start::soon);
        if (!settled) co_return fail(co_await write_failure(settled.error()));
        unsettled_ = false;
    }
    output_.release();
    co_return result<>{};
}

task<std::error_code> exchange::write_failure(std::error_code why) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    if (!within.stopped()) {
        broken_ = lost_ = true;
    } else if (handler_waits_) { // after a stop the next write continues
        arm_late_flush();
    }
    co_return why;
}

void exchange::handler_waits() noexcept {
    handler_waits_ = true;
    input_.give_lease_back();
    if (!output_.empty() || unsettled_) arm_late_flush();
}

void exchange::arm_late_flush() noexcept {
    if (!late_.is_due()) late_.arm(std::chrono::nanoseconds::zero());
}

void exchange::late_flush::arm(std::chrono::nanoseconds pause) noexcept {
    cancel();
    pause_ = pause;
    simplenet::detail::timed_queue::of(*of_.scope_).timers.insert_after(*this, pause);
}

void exchange::late_flush::expired() noexcept {
    // A write in progress takes the output along, and arms this again if it is stopped.
    if (of_.broken_ || of_.writing_.locked()) return;
    const std::size_t before = of_.output_.size();
    of_.write_now();
    if (of_.output_.empty() && !of_.unsettled_) return;
    constexpr std::chrono::nanoseconds shortest = std::chrono::milliseconds{5};
    constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds{640};
    const bool has_moved = of_.output_.size() != before;
    arm(has_moved ? shortest : std::clamp(2 * pause_, shortest, longest));
}

void exchange::write_now() noexcept {
    try {
        if (!output_.empty() && !try_output()) {
            unsettled_ = false;
            output_.release();
        }
        if (output_.empty() && unsettled_) unsettled_ = !transport_.try_write({});
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): it is tried again
    }
    if (output_.empty()) output_.release();
}

task<result<any_stream>> exchange::upgrade(std::string_view protocol) {
    if (stage_ != stage::open || !framing_.upgrade || content_length() != 0U) {
        co_return fail(std::errc::operation_not_permitted);
    }
    if (bad_field_ || !valid_field_value(protocol)) co_return fail(std::errc::invalid_argument);
    const result<> room = co_await make_room(head_size(protocol));
    if (!room) co_return fail(room);
    char* const begin = output_.room(head_size(protocol));
    char* at = put(begin, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ");
    at = put(at, protocol);
    at = put(at, "\r\n");
    at = put(at, fields_.lines());
    at = put(at, "\r\n");
    output_.took(static_cast<std::size_t>(at - begin));
    stage_ = stage::complete;
    const result<> sent = co_await write_out({});
    if (!sent) {
        broken_ = true; // what follows would no longer be HTTP
        co_return fail(sent);
    }
    upgraded_ = true;
    status_ = 101;
    co_return transport_.release(input_.take());
}

} // namespace simplenet::v0::http::detail
