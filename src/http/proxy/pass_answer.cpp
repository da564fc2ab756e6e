// Passing the answer of a backend on.

#include "http/codec/length.hpp"
#include "http/codec/websocket_handshake.hpp"
#include "http/gateway/field_rules.hpp"
#include "http/gateway/read_ahead.hpp"
#include "http/proxy/passage.hpp"
#include "http/proxy/tunnel.hpp"
#include "http/server/exchange.hpp"
#include "http/server/none_left.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/transfer.hpp>

#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

namespace {

/// Of a body that is passed on at once.
constexpr std::size_t relay_piece = std::size_t{16} * 1024;

/// Whether the fields of an answer without a body tell a length that can be passed on.
[[nodiscard]] bool has_good_length(const http::fields& fields) noexcept {
    const std::size_t count = fields.count("Content-Length");
    if (count == 0) return true;
    return count == 1 && parse_length(*fields.find("Content-Length"));
}

task<result<>> write_all(response& to, const_buffer from) {
    while (!from.empty()) {
        const result<std::size_t> count = co_await to.write_some(from);
        if (!count) co_return fail(count);
        from = from.subspan(*count);
    }
    co_return result<>{};
}

/// Holds what a tunnel belongs to.
task<result<>> hold_tunnel(std::shared_ptr<const proxy_core> core, backend_lease lease,
                           any_stream client, any_stream backend, received ahead) {
    const backend_lease counted = std::move(lease);
    const auto idle = core->options().websocket_idle;
    // However it ends, the handler has not failed.
    static_cast<void>(
        co_await run_tunnel(std::move(client), std::move(backend), std::move(ahead), idle));
    co_return result<>{};
}

} // namespace

bool passage::is_good_answer() const noexcept {
    const unsigned status = exchange_->status();
    if (status > 599) return false;
    if (asked_.method() == "HEAD" || status == 304) return has_good_length(exchange_->fields());
    // RFC 9110, section 15.3.6.
    return status != 205 || exchange_->content_length() == 0U;
}

unsigned passage::refuse_answer(std::error_code why) {
    core_->report(gateway_event::bad_answer, backend_, "reading the answer", why);
    return 502;
}

std::error_code passage::cut_answer(std::error_code why) {
    if (const std::error_code source = exchange_->source_failure()) {
        if (passing_) return source; // the client's fault
        core_->report(gateway_event::trouble, backend_, "reading a stored body", source);
        return make_error_code(errc::gateway_failed);
    }
    const bool is_bad = why == errc::bad_response || why == errc::header_too_large;
    core_->report(is_bad ? gateway_event::bad_answer : gateway_event::failed, backend_,
                  "reading the body of an answer", why);
    return make_error_code(errc::gateway_failed);
}

std::vector<bool> passage::fields_set_before() const {
    const auto& to = exchange::of(asked_);
    std::vector<bool> marks;
    if (!to.has_fields()) return marks;
    for (const field each : exchange_->fields())
        marks.push_back(to.find_field(each.name).has_value());
    return marks;
}

void passage::set_answer() {
    const http::fields& fields = exchange_->fields();
    const named_fields named{fields};
    const auto set_before = fields_set_before();
    std::size_t index = 0;
    answer_.status(exchange_->status());
    for (const field each : fields) {
        if (!set_before.empty() && set_before[index++]) continue;
        switch (kind_of_field(each.name)) {
        case field_kind::hop_by_hop:
        case field_kind::connection:
        case field_kind::content:
            break;
        default:
            if (!named.has(each.name)) {
                exchange::of(asked_).add_parsed_field(each.name, each.value);
            }
        }
    }
}

now_or_task<result<unsigned>> passage::pass_answer() {
    note_answer();
    const unsigned status = exchange_->status();
    if (status == 101) return pass_upgrade();
    if (!is_good_answer())
        return result<unsigned>{refuse_answer(make_error_code(errc::bad_response))};
    if (exchange_->is_chunked()) return pass_chunked();
    const std::optional<const_buffer> whole = exchange_->take_whole();
    if (!whole) return pass_body();
    set_answer();
    if (asked_.method() == "HEAD") {
        if (const auto length = exchange_->fields().find("Content-Length")) {
            answer_.set("Content-Length", *length);
            return result<unsigned>{0U}; // the head leaves when the handler ends
        }
        const bool may_have_body = status != 204 && status != 205 && status != 304;
        if (may_have_body) return none_left(exchange::of(asked_).send_head());
    }
    return none_left(answer_.send({}, *whole));
}

task<result<unsigned>> passage::pass_chunked() {
    scratch memory = scratch::borrow(relay_piece);
    std::size_t size = 0;
    bool has_ended = false;
    while (!has_ended && size < relay_piece) {
        const auto count = exchange_->try_read_chunked({memory.data() + size, relay_piece - size});
        if (!count && count.error() != simplenet::errc::end_of_stream) {
            co_return refuse_answer(count.error()); // nothing has left
        }
        if (count && *count == 0) break;
        has_ended = !count;
        size += count.value_or(0);
    }
    const const_buffer here{memory.data(), size};
    if (has_ended) { // a whole answer costs one write, and needs no chunks
        set_answer();
        const result<> sent = co_await answer_.send({}, here);
        if (!sent) co_return fail(sent);
        co_return 0U;
    }
    if (here.empty()) {
        memory = {};
        co_return co_await pass_body();
    }
    set_answer();
    task<result<unsigned>> passing = pass_on_at_once(false, std::move(memory), size);
    co_return co_await std::move(passing);
}

task<result<unsigned>> passage::pass_body() {
    set_answer();
    if (const auto length = exchange_->content_length()) {
        answer_.set("Content-Length", *exchange_->fields().find("Content-Length"));
    }
    // Without any, the body may take its time.
    const bool has_bytes = !exchange_->is_chunked() && exchange_->has_bytes();
    task<result<unsigned>> passing = pass_on_at_once(!has_bytes, {}, 0);
    co_return co_await std::move(passing);
}

task<result<unsigned>> passage::pass_on_at_once(bool head_first, scratch memory, std::size_t size) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    if (!core_->options().streamed) {
        const ahead_limits limits{
            .memory = core_->options().answer_ahead,
            .file = core_->options().answer_spool,
            .directory = core_->directory(),
            .shared = core_->room(),
            .is_wanted = [this](auto, auto) { return lease_ && lease_->place().is_wanted(); },
            .is_free = [this] { return !lease_; }};
        read_ahead passing{*exchange_, answer_, limits};
        if (head_first) passing.send_head_first();
        if (size != 0) passing.begin_with(std::move(memory), size);
        const result<> passed = co_await passing.run();
        if (const std::error_code why = passing.disk_failure()) {
            core_->report_disk(why);
        }
        if (passed) co_return 0U;
        if (passing.is_lost()) {
            core_->report(gateway_event::trouble, backend_, "reading a stored answer",
                          passed.error());
        }
        if (passing.is_held()) {
            core_->report(gateway_event::slow_client, backend_, "passing an answer on",
                          passed.error());
        }
        if (!passing.is_reader_failure() || within.stopped()) co_return fail(passed);
        co_return fail(cut_answer(passed.error()));
    }
    if (head_first) {
        const result<> sent = co_await exchange::of(asked_).send_head();
        if (!sent) co_return fail(sent);
    }
    if (memory.size() == 0) memory = scratch::borrow(relay_piece);
    for (;;) {
        const result<> written = co_await write_all(answer_, {memory.data(), size});
        if (!written) co_return fail(written);
        const result<std::size_t> count = co_await exchange_->read_some(memory);
        if (!count && count.error() == simplenet::errc::end_of_stream) co_return 0U;
        if (!count && within.stopped()) co_return fail(count);
        if (!count) co_return fail(cut_answer(count.error()));
        size = *count;
    }
}

task<result<unsigned>> passage::pass_upgrade() {
    handshake_fields told;
    for (const field each : exchange_->fields())
        told.add(each.name, each.value);
    // A status alone is no proof: a backend that takes it from elsewhere would get requests through
    // the tunnel that nobody has looked at.
    if (!told.confirms(101, key_)) co_return refuse_answer(make_error_code(errc::bad_response));
    set_answer();
    received ahead;
    any_stream backend = exchange_->release(ahead);
    lease_->place().release(); // a tunnel may last for days
    result<any_stream> client = co_await answer_.upgrade("websocket");
    if (!client) co_return fail(client);
    exchange::of(asked_).continue_with(hold_tunnel(core_, *std::move(lease_), *std::move(client),
                                                   std::move(backend), std::move(ahead)));
    lease_.reset();
    co_return 0U;
}

} // namespace simplenet::v0::http::detail
