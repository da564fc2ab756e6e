#include "http/fastcgi/fastcgi_exchange.hpp"

#include "http/client/client_settings.hpp"
#include "http/client/read_beside.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::size_t answer_block = std::size_t{16} * 1024;
/// How long an answer is awaited on a connection that takes no more of the request.
constexpr std::chrono::seconds last_words{1};

} // namespace

task<result<>> fastcgi_exchange::open() {
    sender_.try_send(connection_->stream());
    for (;;) {
        if (!gather()) co_return fail(end_with(failure::nonsense, errc::gateway_failed));
        switch (head_.parse({text_begin(), text_})) {
        case cgi_head::state::complete:
            taken_ = head_.size();
            co_return result<>{};
        case cgi_head::state::refused:
            co_return fail(end_with(failure::nonsense, errc::gateway_failed));
        case cgi_head::state::incomplete:
            break;
        }
        if (ended_) {
            using fastcgi::protocol_status;
            const bool is_refusal =
                text_ == 0 && (records_.status() == protocol_status::overloaded ||
                               records_.status() == protocol_status::cannot_multiplex);
            co_return fail(end_with(is_refusal ? failure::overloaded : failure::nonsense,
                                    errc::gateway_failed));
        }
        const result<> more = co_await receive(part::head);
        if (!more) co_return more;
    }
}

bool fastcgi_exchange::gather() {
    using fastcgi::answer_reader;
    while (!ended_) {
        const std::string_view input{text_begin() + begin_, end_ - begin_};
        const answer_reader::step step = records_.next(input);
        begin_ += step.consumed;
        switch (step.is) {
        case answer_reader::step::kind::out:
            std::memmove(memory_.data() + text_, step.data.data(), step.data.size());
            text_ += step.data.size();
            break;
        case answer_reader::step::kind::err:
            messages_.add(step.data, at_.name());
            break;
        case answer_reader::step::kind::need_more:
            begin_ = end_ = text_;
            return true;
        case answer_reader::step::kind::end:
            // An answer that the backend refused in the end is not complete.
            if ((text_ != 0 || head_.size() != 0) &&
                records_.status() != fastcgi::protocol_status::request_complete) {
                return false;
            }
            complete();
            break;
        case answer_reader::step::kind::refused:
            return false;
        }
    }
    return true;
}

void fastcgi_exchange::complete() {
    ended_ = true;
    messages_.end(at_.name());
    const bool is_kept = sender_.is_complete() && begin_ == end_ &&
                         settings_.options.keep_connections != 0 &&
                         records_.status() == fastcgi::protocol_status::request_complete;
    sender_.give_up();
    // A process of PHP-FPM serves one connection until that ends, and its others may all be busy
    // so. When a request has waited for a process, close the connection, so that the process serves
    // it, even if others wait for a place here: those would keep the processes to themselves. At
    // once would be too early: in a burst every request would find another one waiting, and no
    // connection would ever be kept.
    if (is_kept && !at_.do_others_wait(simplenet::detail::timed_queue::present()))
        keeper_.give_back(at_, *std::move(connection_));
    connection_.reset();
    at_.end();
}

mutable_buffer fastcgi_exchange::room() {
    // Only a head that has not ended leaves text behind, which its limit bounds.
    if (memory_.size() - end_ < answer_block / 2) {
        scratch larger = scratch::borrow(std::max(answer_block, 2 * memory_.size()));
        if (end_ != 0) std::memcpy(larger.data(), memory_.data(), end_);
        memory_ = std::move(larger);
    }
    return {memory_.data() + end_, memory_.size() - end_};
}

task<result<std::size_t>> fastcgi_exchange::read_some(mutable_buffer into) {
    until_ = {};
    for (;;) {
        if (taken_ != text_) {
            const std::size_t count = std::min(into.size(), text_ - taken_);
            std::memcpy(into.data(), memory_.data() + taken_, count);
            taken_ += count;
            body_bytes_ += count;
            co_return count;
        }
        if (failure_ != failure::none) co_return fail(error_);
        if (ended_) co_return fail(simplenet::errc::end_of_stream);
        taken_ = text_ = begin_ = end_ = 0;
        const result<> more = co_await receive(part::body);
        if (!more) co_return fail(more);
        // What came before the nonsense is passed on.
        if (!gather()) end_with(failure::nonsense, errc::gateway_failed);
    }
}

// --- waiting -------------------------------------------------------------------------------------

fastcgi_exchange::clock::time_point fastcgi_exchange::answer_until(part of) {
    const fastcgi_options& options = settings_.options;
    const auto now = clock::now();
    // A backend that writes nothing but messages for people does not get longer for it.
    if (until_ == clock::time_point{}) {
        until_ = after(now, of == part::head ? options.head_within : options.body_idle);
    }
    // What the backend said before it ended the connection is there already.
    return sender_.write_failure() ? std::min(until_, now + last_words) : until_;
}

task<result<>> fastcgi_exchange::receive(part of) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    for (;;) {
        if (const std::error_code why = sender_.source_failure()) {
            co_return fail(end_with(failure::source, why));
        }
        // An answer that has begun goes on as it would without a body to send.
        if (sender_.is_late() && of == part::head) {
            const auto late = make_error_code(simplenet::errc::deadline_exceeded);
            co_return fail(end_with(failure::timed_out, late));
        }
        const mutable_buffer into = room();
        any_stream& over = connection_->stream();
        result<std::size_t> count = 0;
        if (sender_.can_run()) { // send_limit bounds the writes
            task<result<std::size_t>> reading = read_beside(sender_.run(over), over, into);
            count = co_await std::move(reading);
        } else {
            const auto until = answer_until(of);
            count = co_await with_deadline(over.read_some(into), until);
        }
        if (count && *count != 0) {
            end_ += *count;
            has_begun_ = true;
            co_return result<>{};
        }
        if (count) continue;
        if (within.stopped()) { // nothing is lost
            failure_ = of == part::head ? failure::stopped : failure_;
            co_return fail(count);
        }
        const bool is_late = count.error() == simplenet::errc::deadline_exceeded;
        if (const std::error_code why = sender_.source_failure()) {
            co_return fail(end_with(failure::source, why));
        }
        if (is_late && !sender_.write_failure()) {
            co_return fail(end_with(failure::timed_out, count.error()));
        }
        const bool is_end = count.error() == simplenet::errc::end_of_stream;
        const std::error_code why = sender_.write_failure() ? sender_.write_failure()
                                    : is_end ? make_error_code(errc::incomplete_message)
                                             : count.error();
        co_return fail(end_with(failure::ended, why));
    }
}

std::error_code fastcgi_exchange::end_with(failure what, std::error_code why) noexcept {
    failure_ = what;
    error_ = why;
    sender_.give_up();
    messages_.end(at_.name());
    connection_.reset();
    // What was stored of the answer may take its client long. Before an answer the place is for the
    // next attempt.
    if (has_begun()) at_.place().release();
    return why;
}

} // namespace simplenet::v0::http::detail
