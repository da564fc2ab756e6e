#include "http/client/client_exchange.hpp"

#include "http/client/read_beside.hpp"
#include "http/codec/list.hpp"
#include "http/fields_access.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/time/deadline.hpp>

#if SIMPLENET_HAS_TLS
#include <simplenet/tls/errc.hpp>
#endif

#include <algorithm>
#include <memory>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// Answers with 1xx before the final one. RFC 9110 section 15.2 has no bound; a server needs one or
/// two.
constexpr unsigned most_informational = 16;

/// The most of a redirect's body that is read for the sake of its connection, and the longest time.
constexpr std::size_t most_drained = std::size_t{64} * 1024;
constexpr std::chrono::seconds longest_drain{1};
/// How long an answer is awaited on a connection that takes no more of the request.
constexpr std::chrono::seconds longest_farewell{1};

/// Whether the connection has ended without a close_notify: somebody may have cut it.
[[nodiscard]] bool is_truncated([[maybe_unused]] std::error_code why) noexcept {
#if SIMPLENET_HAS_TLS
    return why == tls::errc::truncated;
#else
    return false;
#endif
}

} // namespace

bool is_end_of_connection(std::error_code why) noexcept {
    return why == errc::incomplete_message || why == std::errc::connection_reset ||
           why == std::errc::broken_pipe || why == std::errc::connection_aborted;
}

client_exchange::client_exchange(std::shared_ptr<const client_settings> with,
                                 exchange_request asked, pooled<any_stream> over,
                                 clock::time_point total_until, connection_keeper* keeper)
    : settings_{std::move(with)}
    , options_{settings_->options()}
    , total_until_{total_until}
    , keeper_{keeper}
    , method_{std::move(asked.method)}
    , url_{std::move(asked.url)}
    , closes_{asked.closes}
    , decompresses_{asked.decompresses}
    , upgrades_{asked.upgrades}
    , connection_{std::move(over)}
    , upload_{std::move(asked), settings_->send_idle()}
    , entries_{scratch::borrow(options_.header_count * sizeof(field_entry))}
    , parser_{{options_.status_line, options_.header_bytes},
              {reinterpret_cast<field_entry*>(entries_.data()), options_.header_count}} {}

// --- the head ------------------------------------------------------------------------------------

task<result<>> client_exchange::open() {
    upload_.try_send(connection_->stream());
    for (;;) {
        switch (parser_.parse(input_.bytes())) {
        case head_state::incomplete: {
            const result<std::size_t> count = co_await wait_into(input_.room(), part::head);
            if (!count) co_return fail(count);
            input_.took(*count);
            break;
        }
        case head_state::refused:
            co_return fail(
                end_with(parser_.status() == 431 ? errc::header_too_large : errc::bad_response));
        case head_state::complete: {
            const result<bool> is_final = take_head();
            if (!is_final) co_return fail(end_with(is_final.error()));
            if (*is_final) co_return result<>{};
            break;
        }
        }
    }
}

result<bool> client_exchange::take_head() {
    const unsigned code = parser_.code();
    const std::size_t size = parser_.size();
    if (code < 200 && !(code == 101 && upgrades_)) {
        if (code == 101 || ++informational_ > most_informational) return fail(errc::bad_response);
        if (code == 100) upload_.go_on();
        input_.consume(size);
        parser_.reset();
        return false;
    }
    head_.assign(input_.bytes().substr(0, size));
    input_.consume(size);
    const unsigned refused =
        frame_response(parser_.version(), code, method_, parser_.fields(), head_.data(), framing_);
    if (refused != 0) {
        return fail(refused == 501 ? errc::unsupported_transfer_coding : errc::bad_response);
    }
    fields_access::borrow(fields_, head_.data(), parser_.fields());
    // A server that refuses the request need not be sent the rest of it (RFC 9112, section 9.5). If
    // it keeps the connection it may want to read it all first, before the rest of its answer.
    if (upload_.is_held() || (code >= 300 && !framing_.keep_alive)) upload_.give_up();
    if (code == 101) return true;
    body_left_ = framing_.length;
    const bool is_empty = framing_.kind == framing::kind::none ||
                          (framing_.kind == framing::kind::length && framing_.length == 0);
    if (is_empty) {
        end_body();
    } else {
        choose_decompression();
    }
    return true;
}

void client_exchange::choose_decompression() {
    // A part of a compressed body cannot be decompressed by itself.
    if (!decompresses_ || parser_.code() == 206 || fields_.count("Content-Encoding") != 1) return;
    const std::string_view coding = *fields_.find("Content-Encoding");
    if (iequals(coding, "gzip") || iequals(coding, "x-gzip")) {
        inflater_ = std::make_unique<inflater>(inflater::format::gzip);
    } else if (iequals(coding, "deflate")) {
        inflater_ = std::make_unique<inflater>(inflater::format::deflate);
    }
}

any_stream client_exchange::release(received& ahead) {
    ahead = input_.take();
    any_stream given = std::move(connection_->stream());
    connection_.reset();
    return given;
}

task<> client_exchange::drain() {
    // A request that has not left ends the connection in any case.
    if (body_ended_ || failure_ || !upload_.is_complete() || body_left_ > most_drained ||
        framing_.kind == framing::kind::until_close) {
        co_return;
    }
    const auto until = clock::now() + longest_drain;
    const scratch dropped = scratch::borrow(std::size_t{4} * 1024);
    for (std::size_t total = 0; total <= most_drained;) {
        task<result<std::size_t>> reading = read_body(dropped);
        const result<std::size_t> count = co_await with_deadline(std::move(reading), until);
        if (!count) co_return;
        total += *count;
    }
}

// --- waiting -------------------------------------------------------------------------------------

client_exchange::clock::time_point client_exchange::answer_until(part of) {
    const auto now = clock::now();
    if (upload_.is_held()) return after(now, options_.continue_within);
    if (of == part::body) return after(now, options_.body_idle);
    if (head_until_ == clock::time_point{}) head_until_ = after(now, options_.headers_within);
    // What the server said before it ended the connection is there already.
    return upload_.write_failure() ? std::min(head_until_, now + longest_farewell) : head_until_;
}

task<result<std::size_t>> client_exchange::wait_into(mutable_buffer into, part of) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    for (;;) {
        if (const std::error_code why = upload_.source_failure()) co_return fail(end_with(why));
        // An answer that has begun goes on as it would without a body to send.
        if (upload_.is_late() && of == part::head) {
            co_return fail(end_with(make_error_code(simplenet::errc::deadline_exceeded)));
        }
        const bool is_held = upload_.is_held();
        any_stream& over = connection_->stream();
        result<std::size_t> count = 0;
        if (upload_.can_run()) { // send_limit bounds the writes
            task<result<std::size_t>> reading = read_beside(upload_.run(over), over, into);
            count = co_await with_deadline(std::move(reading), total_until_);
        } else {
            const auto until = std::min(answer_until(of), total_until_);
            count = co_await with_deadline(over.read_some(into), until);
        }
        if (count && *count != 0) {
            has_begun_ = true;
            co_return count;
        }
        if (count) continue;
        if (within.stopped()) co_return fail(count); // nothing is lost
        if (is_held && count.error() == simplenet::errc::deadline_exceeded &&
            clock::now() < total_until_) {
            upload_.go_on();
            continue;
        }
        if (const std::error_code why = upload_.source_failure()) co_return fail(end_with(why));
        if (count.error() == simplenet::errc::deadline_exceeded && of == part::head &&
            upload_.write_failure() && clock::now() < total_until_) {
            co_return fail(end_with(upload_.write_failure()));
        }
        const bool is_end = count.error() == simplenet::errc::end_of_stream;
        if (is_end && of == part::body && framing_.kind == framing::kind::until_close) {
            co_return fail(count);
        }
        co_return fail(end_with(is_end || is_truncated(count.error())
                                    ? make_error_code(errc::incomplete_message)
                                    : count.error()));
    }
}

std::error_code client_exchange::end_with(std::error_code why) noexcept {
    failure_ = why;
    upload_.give_up();
    connection_.reset();
    if (keeper_ != nullptr) keeper_->broke_off();
    input_.release();
    packed_memory_.release();
    packed_ = {};
    return why;
}

} // namespace simplenet::v0::http::detail
