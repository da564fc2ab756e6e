// Passing the answer of a FastCGI application on.

#include "http/codec/list.hpp"
#include "http/fastcgi/fastcgi_core.hpp"
#include "http/gateway/read_ahead.hpp"
#include "http/server/exchange.hpp"

#include <simplenet/http/errc.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <bitset>
#include <charconv>
#include <chrono>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// The most of an answer to HEAD that is read and dropped for the sake of its connection, and the
/// longest time: a script may go on for minutes behind its answer.
constexpr std::uint64_t most_dropped = std::uint64_t{1024} * 1024;
constexpr std::chrono::seconds longest_drop{1};

/// Reads the rest of an answer, if it is small and comes soon, so that the connection can be used
/// again. Otherwise the connection is closed with the exchange.
///
/// Meanwhile the answer leaves for the client (exchange::handler_waits()), whose next request
/// waits.
task<> drop_body(fastcgi_exchange& from) {
    const auto until = std::chrono::steady_clock::now() + longest_drop;
    const scratch dropped = scratch::borrow(std::size_t{4} * 1024);
    for (std::uint64_t total = 0; total <= most_dropped;) {
        task<result<std::size_t>> reading = from.read_some(dropped);
        const result<std::size_t> count = co_await with_deadline(std::move(reading), until);
        if (!count) co_return;
        total += *count;
    }
}

} // namespace

task<result<unsigned>> fastcgi_core::pass_on(call& with, fastcgi_exchange& from,
                                             const backend_lease& lease) const {
    response& answer = with.answer;
    const cgi_head& head = from.head();
    const bool is_head = with.asked.method() == "HEAD";
    const unsigned status = head.status();
    const bool is_bodiless = status == 204 || status == 205 || status == 304;
    const const_buffer first = from.first_bytes();
    const auto length = head.content_length();
    if (length && !is_head && !is_bodiless &&
        (first.size() > *length || (from.has_ended() && first.size() != *length))) {
        report(gateway_event::bad_answer, &lease, "Content-Length is not the size of the answer",
               errc::gateway_failed);
        co_return 502U;
    }
    answer.status(status);
    // What a program in front of this handler has set wins.
    std::bitset<cgi_limits{}.fields> is_set;
    for (std::size_t each = 0; each < head.fields().size(); ++each)
        is_set[each] = answer.find(head.fields()[each].name(from.head_text())).has_value();
    for (std::size_t at = 0; at < head.fields().size(); ++at) {
        const field_entry& each = head.fields()[at];
        const std::string_view name = each.name(from.head_text());
        if (is_set[at]) continue;
        if (is_for_gateway(name)) {
            if (iequals(name, "X-Accel-Redirect") || iequals(name, "X-Sendfile")) {
                report(gateway_event::bad_answer, &lease,
                       "X-Accel-Redirect and X-Sendfile are not supported", errc::gateway_failed);
            }
            continue;
        }
        answer.add(name, each.value(from.head_text()));
    }
    if (length && !is_bodiless) {
        std::array<char, 20> text;
        const char* const end = std::to_chars(text.data(), text.data() + 20, *length).ptr;
        answer.set("Content-Length", {text.data(), static_cast<std::size_t>(end - text.data())});
    }
    if (is_head || is_bodiless) {
        // Without its length, an answer to HEAD must not claim to be empty.
        result<> sent;
        if (is_bodiless) {
            sent = co_await answer.send({}, const_buffer{});
        } else {
            sent = co_await exchange::of(with.asked).send_head();
        }
        if (!sent) co_return fail(sent);
        co_await drop_body(from);
        co_return 0U;
    }
    if (from.has_ended()) {
        const result<> sent = co_await answer.send({}, first);
        if (!sent) co_return fail(sent);
        co_return 0U;
    }
    const fastcgi_options& options = settings_.options;
    ahead_limits limits{.memory = options.answer_ahead, .shared = {.memory = room_.memory}};
    if (!options.streamed) {
        limits.file = options.answer_spool;
        limits.directory = settings_.temporary_directory;
        limits.shared.disk = room_.disk;
        limits.hold = options.answer_hold;
        limits.is_wanted = [&lease](auto now, auto so_long) {
            return lease.place().is_wanted() || lease.do_others_wait(now, so_long);
        };
        limits.is_free = [&from] { return from.has_ended(); };
    }
    read_ahead forward{from, answer, limits};
    if (first.empty()) forward.send_head_first(); // the body may take its time
    const result<> done = co_await forward.run();
    if (const std::error_code why = forward.disk_failure()) {
        if (tells_of_disk_()) report(gateway_event::not_stored, nullptr, limits.directory, why);
    }
    if (done && (!length || from.body_bytes() == *length)) co_return 0U;
    if (done) {
        report(gateway_event::bad_answer, &lease, "the answer is smaller than its Content-Length",
               errc::gateway_failed);
        co_return fail(errc::gateway_failed);
    }
    if (forward.is_lost()) {
        report(gateway_event::trouble, &lease, "reading a stored answer", done.error());
    }
    if (forward.is_held()) {
        report(gateway_event::slow_client, &lease, "passing an answer on", done.error());
    }
    if (!forward.is_reader_failure()) {
        if (done.error() != std::errc::message_size) co_return fail(done);
        report(gateway_event::bad_answer, &lease, "the answer is larger than its Content-Length",
               done.error());
        co_return fail(errc::gateway_failed);
    }
    if (from.why_failed() == fastcgi_exchange::failure::source) {
        if (!with.body) co_return fail(done); // the client's fault
        report(gateway_event::trouble, &lease, "reading a stored body", done.error());
        co_return fail(errc::gateway_failed);
    }
    const bool is_nonsense = from.why_failed() == fastcgi_exchange::failure::nonsense;
    report(is_nonsense ? gateway_event::bad_answer : gateway_event::failed, &lease,
           "reading the body of an answer", done.error());
    co_return fail(errc::gateway_failed);
}

} // namespace simplenet::v0::http::detail
