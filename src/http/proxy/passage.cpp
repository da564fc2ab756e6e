#include "http/proxy/passage.hpp"

#include "http/client/owned_request.hpp"
#include "http/codec/method.hpp"
#include "http/codec/websocket_handshake.hpp"
#include "http/server/exchange.hpp"
#include "http/server/none_left.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>

#include <chrono>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// What stands in Host if no client has told one.
[[nodiscard]] std::string_view host_of_backend(std::string_view name) noexcept {
    return name.starts_with("unix:") ? std::string_view{"localhost"} : name;
}

} // namespace

// --- the request ---------------------------------------------------------------------------------

now_or_task<result<unsigned>> passage::run() {
    switch (judge_forwards(asked_.method(), asked_.fields())) {
    case forwards::allowed:
        break;
    case forwards::malformed:
        return result<unsigned>{400U};
    case forwards::exhausted:
        // This is the final recipient. A TRACE would show what proxies in front have added.
        if (asked_.method() == "TRACE") return result<unsigned>{501U};
        return none_left(answer_.status(204).send({}, {}));
    }
    connections_ = connections_of(exchange::of(asked_), core_);
    if (exchange::of(asked_).asks_for_upgrade()) find_handshake();
    if (asked_.content_length() != 0U) {
        if (!core_->options().streamed) return run_spooled(core_->directory());
        passing_.emplace(asked_);
    }
    return try_backends();
}

// A frame of its own: most requests have no body.
task<result<unsigned>> passage::run_spooled(std::string_view directory) {
    spooled_body body{directory, core_->options().request_buffer};
    const result<> filled = co_await body.fill(async_reader_ref{asked_});
    if (!filled) {
        if (filled.error() == errc::body_too_large) co_return 413U;
        if (body.disk_status() == 0) co_return fail(filled);
        core_->report(gateway_event::trouble, {}, "storing the body of a request", filled.error());
        co_return body.disk_status();
    }
    spooled_ = &body;
    const result<unsigned> answered = co_await try_backends();
    exchange_.reset(); // it refers to the body
    spooled_ = nullptr;
    co_return answered;
}

void passage::find_handshake() {
    if (asked_.content_length() != 0U) return;
    handshake_fields told;
    for (const field each : asked_.fields())
        told.add(each.name, each.value);
    // Anything else that names WebSocket is passed on as the request that it is without.
    if (told.of_request(asked_.method(), asked_.version()) == handshake_fields::verdict::accepted) {
        key_ = told.key();
    }
}

exchange_request passage::message() {
    const endpoint peer = asked_.connection_peer();
    const bool trusted = !core_->trusted().empty() && core_->trusted().contains(peer.address());
    passed_request passed{.method = asked_.method(),
                          .path = asked_.path(),
                          .target = asked_.target(),
                          .host = asked_.host(),
                          .version = asked_.version(),
                          .fields = &asked_.fields(),
                          .secure = asked_.secure(),
                          .peer = peer.address(),
                          .trusted = trusted,
                          .client = asked_.peer().address(),
                          .client_is_told = exchange::of(asked_).is_peer_told(),
                          .has_body = true,
                          .length = asked_.content_length(),
                          .upgrades = !key_.empty()};
    exchange_request made{.method = std::string{asked_.method()}, .upgrades = passed.upgrades};
    if (spooled_ != nullptr) {
        passed.length = spooled_->size();
        if (spooled_->is_in_memory()) {
            made.body = spooled_->front();
        } else {
            spooled_->rewind();
            made.stream = *spooled_;
            made.content_length = spooled_->size();
        }
    } else if (passing_) {
        made.stream = *passing_;
        made.content_length = asked_.content_length();
    } else {
        passed.has_body = anticipates_body(asked_.method());
    }
    made.head = write_request_head(passed, core_->rules(), host_of_backend(backend_));
    return made;
}

// --- backends ------------------------------------------------------------------------------------

task<result<unsigned>> passage::try_backends() {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    constexpr auto forever = std::chrono::steady_clock::time_point::max();
    backend_search search{*core_->backends(), connections_->pools, asked_.peer().address(),
                          connections_->wait};
    const repeatable may_repeat{!passing_ && is_idempotent(asked_.method())};
    while ((lease_ = search.next())) {
        is_noted_ = false;
        backend_ = lease_->name();
        for (bool is_new = false;; is_new = true) {
            exchange_.reset(); // a connection has to end before its place
            now_or_task<result<backend_connection>> borrowing =
                search.borrow(*lease_, is_new, may_repeat);
            result<backend_connection> lent = co_await std::move(borrowing);
            if (!lent) {
                if (within.stopped()) co_return fail(lent);
                const no_connection judged = backend_search::judge(lent.error());
                failure_ = judged.status;
                if (judged.kind == gateway_event::failed) lease_->failed();
                core_->report(judged.kind, backend_, judged.doing, lent.error());
                break;
            }
            if (search.has_waited() && exchange::of(asked_).has_client_left()) {
                connections_->pools.give_back(*lease_, *std::move(lent));
                lease_.reset();
                co_return 503U;
            }
            const bool was_kept = lent->is_reused();
            connection_keeper* const keeper = this;
            exchange_.emplace(core_->exchanges(), message(), *std::move(lent), forever, keeper);
            client_watch watch{exchange::of(asked_).native_handle(), lease_->place()};
            connections_->pools.watch(*lease_, watch);
            auto opening = watch.of(exchange_->open());
            const result<> opened = co_await std::move(opening);
            watch.unlink();
            if (opened) co_return co_await pass_answer();
            if (within.stopped()) co_return fail(opened);
            if (watch.must_end()) {
                exchange_.reset();
                lease_.reset();
                co_return 503U;
            }
            // The backend has closed a connection that it had kept: nobody's failure.
            const bool is_stale = was_kept && !is_new && is_end_of_connection(opened.error());
            if (is_stale && can_repeat()) continue;
            const auto judged = judge_failure(opened.error(), is_stale);
            if (!judged) co_return fail(judged);
            if (*judged) co_return **judged;
            break;
        }
        exchange_.reset();
    }
    co_return failure_;
}

bool passage::can_repeat() const noexcept {
    if (exchange_->has_begun() || (passing_ && passing_->has_begun())) return false;
    return !exchange_->has_sent() || is_idempotent(asked_.method());
}

result<std::optional<unsigned>> passage::judge_failure(std::error_code why, bool was_kept) {
    if (const std::error_code source = exchange_->source_failure()) {
        if (source == errc::body_too_large) return 413U;
        if (passing_) return fail(source); // the client's fault
        core_->report(gateway_event::trouble, backend_, "reading a stored body", source);
        return 500U;
    }
    if (why == errc::bad_response || why == errc::header_too_large ||
        why == errc::unsupported_transfer_coding) {
        return refuse_answer(why);
    }
    // What is left of such a request must not go round all backends.
    const bool is_limit = why == simplenet::errc::deadline_exceeded;
    if (is_limit) why = std::make_error_code(std::errc::timed_out);
    if (was_kept) {
        failure_ = 502;
        core_->report(gateway_event::failed, backend_, "a kept connection had ended", why);
    } else {
        note_failure("waiting for an answer", why);
    }
    if (is_limit || !can_repeat()) return failure_;
    return std::nullopt;
}

void passage::note_failure(std::string_view doing, std::error_code why) {
    failure_ = why == std::errc::timed_out ? 504 : 502;
    lease_->failed();
    core_->report(gateway_event::failed, backend_, doing, why);
}

void passage::note_answer() noexcept {
    if (!lease_ || std::exchange(is_noted_, true)) return;
    if (lease_->succeeded()) {
        core_->report(gateway_event::recovered, backend_, "an answer has come");
    }
}

void passage::closed() noexcept {
    note_answer();
    lease_.reset();
}

void passage::broke_off() noexcept {
    // What was stored of the answer may take its client long. Before an answer the place is for the
    // next attempt.
    if (lease_ && exchange_->has_begun()) lease_->place().release();
}

void passage::keep(pooled<any_stream> connection) {
    note_answer();
    connections_->pools.give_back(*lease_, std::move(connection));
    lease_.reset();
}

} // namespace simplenet::v0::http::detail
