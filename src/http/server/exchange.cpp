#include "http/server/exchange.hpp"

#include "http/codec/target.hpp"
#include "http/fields_access.hpp"
#include "http/server/handler_call.hpp"
#include "http/server/left_client.hpp"
#include "http/server/service.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/http/status.hpp>
#include <simplenet/server/detail/spare_wait.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

using clock = std::chrono::steady_clock;

/// Of a head that is not complete: its connection has to end.
constexpr std::errc no_room = std::errc::resource_unavailable_try_again;

[[nodiscard]] bool is_only_empty_lines(std::string_view bytes) noexcept {
    while (bytes.starts_with("\r\n"))
        bytes.remove_prefix(2);
    return bytes.empty();
}

/// Of the head of a connection's first request.
[[nodiscard]] clock::time_point first_deadline(loop_state& on) {
    on.look();
    const std::chrono::nanoseconds limit = on.with().headers_within;
    return limit > std::chrono::nanoseconds::zero() ? clock::now() + limit
                                                    : clock::time_point::max();
}

} // namespace

connection_state::connection_state(const connection_info& of, loop_state& on)
    : info{of}
    , loop{on}
    , first_head_until{first_deadline(on)} {}

std::chrono::nanoseconds connection_state::idle_limit() const noexcept {
    const limits& with = loop.with();
    const std::chrono::nanoseconds limit = requests == 0 ? with.headers_within : with.keep_alive;
    return limit > std::chrono::nanoseconds::zero() ? limit : std::chrono::nanoseconds::max();
}

std::chrono::nanoseconds connection_state::last_limit() const noexcept {
    return std::min(loop.with().last_request, idle_limit());
}

exchange::exchange(connection_state& connection, transport& over, std::span<field_entry> entries,
                   std::span<char> spare)
    : connection_{connection}
    , transport_{over}
    , serving_{connection.loop.current()}
    , limits_{&serving_->what->with}
    , spare_{spare}
    , all_spare_{spare}
    , parser_{{limits_->request_line, limits_->header_bytes}, entries}
    , request_{*this}
    , response_{*this}
    , compression_{serving_->what->compression} {}

exchange::~exchange() = default;

bool exchange::has_client_left() const noexcept {
    return has_left(native_handle());
}

// --- one request after the other -----------------------------------------------------------------

task<ending> exchange::run(received first) {
    scope_ = &co_await simplenet::detail::own_scope{};
    input_.append(std::move(first));
    const unsigned before = connection_.requests;
    for (bool is_first = true;; is_first = false) {
        if (!is_first && !input_.empty()) begin_request();
        if (is_only_empty_lines(input_.bytes())) {
            gzip_.reset(); // not kept while the last bytes wait for their client
            more_spare_.clear();
            input_.consume(input_.bytes().size());
            const result<> flushed = co_await write_out({});
            if (!flushed) co_return ending::abort;
            // Empty lines are no requests: they must not keep a connection for ever.
            constexpr unsigned most_empty_runs = 4;
            if (connection_.requests != before)
                connection_.empty_runs = 0;
            else if (++connection_.empty_runs > most_empty_runs)
                co_return ending::close;
            co_return ending::idle;
        }
        if (serving_->what->on_answered != nullptr) began_ = clock::now();
        head_state head = parser_.parse(input_.bytes());
        if (head == head_state::incomplete) {
            const result<head_state> whole = co_await read_rest_of_head();
            if (!whole) co_return co_await end_without_head(whole.error());
            head = *whole;
            if (head == head_state::incomplete) continue; // only an empty line, in two pieces
        }
        if (head == head_state::refused) co_return co_await refuse(parser_.status());
        if (const unsigned refused = understand(); refused != 0) {
            co_return co_await refuse(refused);
        }
        route_handler* handler = nullptr;
        const unsigned own_answer = choose_handler(handler);
        if (own_answer == 413) co_return co_await refuse(413);
        if (handler == nullptr) {
            co_await answer_simply(own_answer);
        } else {
            handler_call call{*handler, *this, request_, response_};
            const handler_outcome outcome = co_await call;
            handler_ended();
            const bool excused = excused_ && outcome.error == excused_;
            if (outcome.error && !excused) co_await fail_answer(outcome);
        }
        ending end = ending::idle;
        if (!is_done()) end = co_await end_request();
        tell_answered();
        if (end != ending::idle) co_return end;
        // A client that pipelines must not keep the loop to itself.
        if (!scope_->queue->take_inline_turn() || takes_long()) co_await yield();
        if (output_.size() > output::gathers) {
            const result<> flushed = co_await write_out({});
            if (!flushed) co_return ending::abort;
        }
    }
}

bool exchange::takes_long() noexcept {
    if (is_long_ || input_.empty()) return is_long_;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now); // in the vDSO; cannot fail for this clock
    const std::chrono::nanoseconds sees =
        std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
    // This clock moves every 1 to 10 ms. Once it has, each request has a turn of the loop.
    is_long_ = seen_at_ != std::chrono::nanoseconds::zero() && sees != seen_at_;
    seen_at_ = sees;
    return is_long_;
}

void exchange::begin_request() noexcept {
    request_.method_ = request_.target_ = request_.path_ = request_.query_ = {};
    request_.host_ = request_.user_ = request_.label_ = {};
    parser_.reset();
    spare_ = all_spare_;
    more_spare_.clear();
    framing_ = {};
    head_only_ = false;
    chunks_.reset();
    body_ended_ = body_failed_ = false;
    body_error_ = {};
    body_status_ = 0;
    body_pace_.reset();
    draining_ = false;
    handler_waits_ = false;
    excused_ = {};
    refusal_ = 0;
    forget_answer();
    status_ = 200;
    stage_ = stage::open;
    compresses_ = false;
    gzip_.reset();
    uptake_.reset();
    fields_access::borrow(request_.fields_, "", {});
    fields_access::borrow(request_.trailers_, "", {});
    told_peer_.reset();
    told_secure_.reset();
    body_bytes_ = 0;
    compression_ = serving_->what->compression;
    began_ = {};
    told_ = false;
}

void exchange::forget_answer() noexcept {
    fields_.clear();
    bad_field_ = has_date_ = has_type_ = varies_ = missed_ = false;
    announced_.reset();
}

task<result<head_state>> exchange::read_rest_of_head() {
    auto until = clock::time_point::max();
    if (connection_.requests == 0) {
        until = connection_.first_head_until;
    } else if (limits_->headers_within > std::chrono::nanoseconds::zero()) {
        until = clock::now() + limits_->headers_within;
    }
    const result<> flushed = co_await write_out({});
    if (!flushed) co_return fail(flushed);
    simplenet::detail::spare_wait waiting{*scope_, transport_.native_handle()};
    for (;;) {
        auto receiving = waiting.of(transport_.receive());
        result<received> more = co_await with_deadline(std::move(receiving), until);
        if (more) {
            input_.append(*std::move(more));
            const head_state head = parser_.parse(input_.bytes());
            const bool is_over = head != head_state::incomplete;
            if (is_over || is_only_empty_lines(input_.bytes())) co_return head;
        }
        if (waiting.must_end() && !scope_->stopped()) co_return fail(no_room);
        if (!more) co_return fail(more);
    }
}

task<ending> exchange::end_without_head(std::error_code why) {
    if (why == simplenet::errc::end_of_stream) co_return ending::close;
    if (broken_) co_return ending::abort; // an answer did not leave: the head was not slow
    const bool is_place_needed = why == no_room;
    const bool is_too_slow = why == simplenet::errc::deadline_exceeded && !scope_->stopped();
    if (!is_place_needed && !is_too_slow) co_return ending::abort;
    const ending end = co_await refuse(408);
    // Lingering would keep the place.
    if (end == ending::linger && is_place_needed) co_return ending::give_way;
    co_return end;
}

unsigned exchange::understand() {
    ++connection_.requests;
    connection_.loop.count_request();
    const std::size_t size = parser_.size();
    head_ = input_.bytes().data();
    if (!input_.is_own_memory()) {
        // The loop's memory goes back early: a handler may take its time.
        char* const copy = take_spare(size);
        std::memcpy(copy, head_, size);
        head_ = copy;
    }
    input_.consume(size);
    request_.method_ = parser_.method(head_);
    request_.target_ = parser_.target(head_);
    request_.version_ = parser_.version();
    fields_access::borrow(request_.fields_, head_, parser_.fields());
    head_only_ = request_.method_ == "HEAD";
    const unsigned refused = frame_request(parser_.version(), parser_.fields(), head_, framing_);
    if (refused != 0) return refused;
    body_left_ = framing_.length;
    body_ended_ = framing_.kind == framing::kind::none ||
                  (framing_.kind == framing::kind::length && framing_.length == 0);
    awaits_continue_ = framing_.expects_continue && !body_ended_;
    request_.host_ = framing_.host;
    if (request_.method_ == "CONNECT") return 501; // this is no proxy
    const auto target = parse_target(request_.method_, request_.target_);
    if (!target) return 400;
    request_.query_ = target->query;
    if (target->is == target_parts::form::absolute) request_.host_ = target->authority;
    if (target->path.empty()) {
        request_.path_ = "*";
    } else if (!take_path(target->path)) {
        return 400;
    }
    return 0;
}

bool exchange::take_path(std::string_view raw) {
    request_.path_ = raw;
    if (!needs_normalising(raw)) return true;
    char* const path = take_spare(raw.size());
    const std::optional<std::size_t> size = normalise_path(raw, path);
    if (!size) return false;
    request_.path_ = {path, *size};
    return true;
}

char* exchange::take_spare(std::size_t size) {
    if (size > spare_.size()) {
        more_spare_.push_back(scratch::borrow(std::max<std::size_t>(size, 4096)));
        const scratch& added = more_spare_.back();
        spare_ = {reinterpret_cast<char*>(added.data()), added.size()};
    }
    char* const taken = spare_.data();
    spare_ = spare_.subspan(size);
    return taken;
}

unsigned exchange::choose_handler(route_handler*& handler) {
    connection_.loop.refresh(serving_);
    limits_ = &serving_->what->with;
    compression_ = serving_->what->compression;
    serving_->what->routes.match(request_.method_, request_.path_, match_);
    const bool found = match_.is == route_match::kind::found;
    body_limit_ = found ? match_.to->body.value_or(limits_->body) : limits_->body;
    if (!found && match_.is != route_match::kind::no_path && !match_.allow.empty()) {
        fields_.add("Allow", match_.allow);
    }
    switch (match_.is) {
    case route_match::kind::found:
        decode_parameters();
        if (body_limit_ != 0 && framing_.length > body_limit_) return 413;
        handler = match_.to->handler.get();
        return 0;
    case route_match::kind::no_path:
        return 404;
    case route_match::kind::other_method:
        return 405;
    case route_match::kind::unknown_method:
        return 501;
    case route_match::kind::options:
        return 204;
    }
    std::unreachable();
}

void exchange::decode_parameters() {
    decoded_.clear();
    const auto values = std::span{match_.values}.first(match_.count);
    const auto is_encoded = [](std::string_view each) { return each.contains('%'); };
    if (std::ranges::none_of(values, is_encoded)) return; // nearly always
    for (const std::string_view each : values)
        decoded_.push_back(decoded_parameter(each));
}

task<> exchange::fail_answer(const handler_outcome& outcome) {
    closing_ = true;
    const std::error_code failure = *outcome.error;
    const bool is_body_error = failure && failure == body_error_;
    if (!is_body_error) { // else it is the client's fault
        thrown_ = outcome.thrown;
        if (!scope_->stopped()) connection_.failed = true;
    }
    if (stage_ == stage::complete) co_return; // nothing is missing
    const unsigned status = is_body_error ? body_status_ : 500;
    if (stage_ != stage::open || scope_->stopped() || status == 0) {
        broken_ = true;
    } else if (!broken_) {
        forget_answer();
        co_await answer_simply(status);
    }
}

bool exchange::is_done() const noexcept {
    return stage_ == stage::complete && body_ended_ && !closing_ && !broken_ && !upgraded_;
}

task<ending> exchange::end_request() {
    if (upgraded_) co_return ending::upgraded;
    if (broken_ || stage_ == stage::sending) co_return ending::abort;
    if (stage_ == stage::open) {
        if (scope_->stopped()) co_return ending::abort; // no answer, not even an empty one
        if (missed_ || has_bad_head() || (announced_ && *announced_ != 0 && !head_only_)) {
            connection_.failed = true;
            co_return co_await refuse(500);
        }
        // An answer to HEAD of which the handler only knows the length.
        if (head_only_ && announced_ && takes_gzip({}, announced_)) {
            const result<> sent = co_await send_compressed({}, {});
            if (!sent) co_return ending::abort;
        } else {
            const result<> room = co_await make_room(head_size({}));
            if (!room) co_return ending::abort;
            append_answer({}, {});
        }
    } else if (stage_ == stage::streaming) {
        if (is_stream_cut()) co_return ending::abort;
        const result<> ended = co_await end_stream();
        if (!ended) co_return ending::abort;
    }
    if (!closing_ && !body_ended_) {
        const bool drained = co_await drain_body();
        if (!drained) closing_ = true;
    }
    if (!closing_) co_return ending::idle;
    corks_ = !output_.empty() && !transport_.secure;
    const result<> flushed = co_await write_out({});
    if (!flushed) co_return ending::abort;
    // At once: until then the kernel keeps the last bytes, for up to 200 ms (tcp(7), TCP_CORK).
    if (corks_) transport_.end_writing();
    if (!body_ended_ || !input_.empty()) co_return ending::linger;
    // With TLS even a client that asks for nothing more may send something: its close_notify.
    co_return framing_.keep_alive || transport_.secure ? ending::settle : ending::close;
}

bool exchange::is_stream_cut() noexcept {
    if (head_only_) return false;
    if (announced_) {
        if (answer_left_ != 0 && !scope_->stopped()) connection_.failed = true;
        return answer_left_ != 0;
    }
    // A handler that returns nothing cannot tell why it has ended.
    return missed_ || scope_->stopped();
}

task<result<>> exchange::end_stream() {
    if (!head_only_) {
        if (compresses_) {
            const auto ended = co_await write_compressed({}, gzip_encoder::until::finish);
            if (!ended) co_return fail(ended);
        }
        if (body_end_ == body_end::chunks) {
            const result<> room = co_await make_room(last_chunk.size());
            if (!room) co_return room;
            output_.append(last_chunk);
        }
    }
    complete();
    co_return result<>{};
}

task<bool> exchange::drain_body() {
    if (awaits_continue_ || body_failed_ || body_left_ > most_drained) co_return false;
    draining_ = true;
    const scratch dropped = scratch::borrow(std::size_t{4} * 1024);
    const bool has_limit = limits_->linger > std::chrono::nanoseconds::zero();
    const auto begin = clock::now();
    for (std::size_t total = 0; total <= most_drained;) {
        if (has_limit && clock::now() - begin >= limits_->linger) co_return false;
        const result<std::size_t> count = co_await read_body(dropped);
        if (!count) co_return count.error() == simplenet::errc::end_of_stream;
        total += *count;
    }
    co_return false;
}

task<ending> exchange::refuse(unsigned status) {
    closing_ = true;
    forget_answer();
    co_await answer_simply(status);
    const result<> flushed = co_await write_out({});
    tell_answered();
    co_return flushed ? ending::linger : ending::abort;
}

task<> exchange::answer_simply(unsigned status) {
    status_ = status;
    std::array<char, 64> text;
    std::string_view body;
    if (!forbids_body()) {
        char* at = std::to_chars(text.data(), text.data() + 3, status).ptr;
        *at++ = ' ';
        at = std::ranges::copy(reason_of(status), at).out;
        *at++ = '\n';
        body = {text.data(), static_cast<std::size_t>(at - text.data())};
    }
    constexpr std::string_view plain = "text/plain; charset=utf-8";
    const result<> room = co_await make_room(head_size(plain) + body.size());
    if (room) append_answer(body.empty() ? std::string_view{} : plain, body);
}

task<result<>> exchange::answer_with(unsigned status) {
    co_await answer_simply(status);
    co_return result<>{};
}

void exchange::tell_answered() noexcept {
    const serving& with = *serving_->what;
    if (with.on_answered == nullptr || std::exchange(told_, true)) return;
    const bool upgraded = upgraded_;
    with.on_answered({.asked = request_,
                      .status = stage_ == stage::open ? 0 : status_,
                      .body_bytes = body_bytes_,
                      .duration = began_ == clock::time_point{} ? clock::duration::zero()
                                                                : clock::now() - began_,
                      .complete = upgraded || (stage_ == stage::complete && !broken_)},
                     with.context);
}

// --- what a handler asks -------------------------------------------------------------------------

std::string_view exchange::parameter(std::string_view name) const noexcept {
    if (match_.is != route_match::kind::found) return {};
    const auto& names = match_.to->names;
    for (std::size_t each = 0; each < match_.count; ++each) {
        if (names[each] != name) continue;
        return decoded_.empty() ? match_.values[each] : std::string_view{decoded_[each]};
    }
    return {};
}

std::string_view exchange::keep_text(std::string_view text) {
    char* const copy = take_spare(text.size());
    std::ranges::copy(text, copy);
    return {copy, text.size()};
}

void exchange::rewrite(std::string_view path) {
    SIMPLENET_EXPECTS(path.starts_with('/'), "the path of a request does not begin with '/'");
    request_.path_ = keep_text(path);
}

void exchange::set_user(std::string_view name) {
    request_.user_ = keep_text(name);
}

std::optional<std::uint64_t> exchange::content_length() const noexcept {
    if (framing_.kind == framing::kind::chunked) return std::nullopt;
    return framing_.length;
}

} // namespace simplenet::v0::http::detail
