#include "http/fastcgi/fastcgi_core.hpp"

#include "http/codec/method.hpp"
#include "http/codec/target.hpp"
#include "http/files/open_beneath.hpp"
#include "http/gateway/backend_search.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// A body of this size leaves in one write with its request.
constexpr std::size_t most_joined = std::size_t{16} * 1024;

[[nodiscard]] connection_limits limits_of(const fastcgi_options& options) noexcept {
    return {.keep = options.keep_connections,
            .most = options.connections,
            .connect = options.connect,
            .idle = options.idle};
}

} // namespace

fastcgi_loop::fastcgi_loop(std::shared_ptr<const fastcgi_core> of)
    : core{std::move(of)}
    , connections{core->backends(), limits_of(core->settings().options)}
    , scripts{core->settings()} {}

fastcgi_core::fastcgi_core(const fastcgi_options& options, std::string_view prefix)
    : settings_{options, prefix}
    , backends_{std::make_shared<const backend_set>(options.backends)} {
    if (!settings_.has_scripts() || settings_.root_may_be_elsewhere) return;
    const result<unique_fd> root = open_root(settings_.root);
    if (!root) throw std::system_error{root.error(), settings_.root};
}

task<result<unsigned>> fastcgi_core::attempt(request& asked, response& answer) const {
    const std::shared_ptr<fastcgi_loop> on = exchange::of(asked).loop().local<fastcgi_loop>(
        this, [this] { return std::make_shared<fastcgi_loop>(shared_from_this()); });
    call with{.asked = asked, .answer = answer, .on = *on};
    std::string spare;
    std::optional<std::string_view> name = path_to_serve(asked, spare);
    if (!name) co_return 404U;
    script_path path;
    if (settings_.has_scripts()) {
        const std::size_t size = name->size();
        if (name->ends_with('/')) name = with_index(*name, spare);
        const result<script_path> script = co_await on->scripts.find(*name);
        if (!script) {
            const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
            if (within.stopped()) co_return fail(script);
            co_return status_of(script.error());
        }
        path = *script;
        if (path.script.empty()) co_return 404U;
        // The index is that of a directory, not of what is behind a script.
        if (path.script.size() <= size) path.info.remove_suffix(name->size() - size);
        if (!path.info.empty() && !settings_.options.path_info) co_return 404U;
    } else if (name->starts_with(settings_.prefix)) {
        path = {settings_.prefix, name->substr(settings_.prefix.size())};
    } else {
        path = {{}, *name}; // a program has called the handler for another path
    }
    const std::optional<std::uint64_t> told = asked.content_length();
    std::optional<std::uint64_t> size = told;
    with.is_streamed = settings_.options.streamed && told && *told != 0;
    if (with.is_streamed) {
        with.size = *told;
    } else if (told != std::uint64_t{0}) {
        const result<unsigned> failed = co_await read_body(asked, with.body);
        if (!failed || *failed != 0) co_return failed;
        size = with.size = with.body->size();
    } else if (!asked.fields().find("Content-Length")) {
        size.reset();
    }
    write_request(settings_, asked, path, size, with.front);
    using fastcgi::header_size;
    if (with.size == 0) {
        fastcgi::write_header(with.front.room(header_size), fastcgi::record_type::in, 0);
        with.front.took(header_size);
    } else if (with.body && with.body->is_in_memory() && with.size <= most_joined) {
        const const_buffer bytes = with.body->front();
        char* const begin = with.front.room(bytes.size() + 2 * header_size);
        char* at = fastcgi::write_header(begin, fastcgi::record_type::in, bytes.size());
        at = std::copy_n(reinterpret_cast<const char*>(bytes.data()), bytes.size(), at);
        at = fastcgi::write_header(at, fastcgi::record_type::in, 0);
        with.front.took(static_cast<std::size_t>(at - begin));
        with.size = 0;
    }
    co_return co_await ask(with);
}

std::optional<std::string_view> fastcgi_core::path_to_serve(const request& asked,
                                                            std::string& spare) const {
    std::string_view path = asked.path();
    if (!path.starts_with('/')) return std::nullopt;
    if (path.contains('%')) {
        if (has_encoded_slash(path)) return std::nullopt;
        spare = decoded_parameter(path);
        path = spare;
    }
    return path;
}

std::string_view fastcgi_core::with_index(std::string_view path, std::string& spare) const {
    if (settings_.index.empty()) return path;
    if (spare.empty()) spare = path;
    return spare += settings_.index;
}

task<result<unsigned>> fastcgi_core::read_body(request& asked,
                                               std::optional<spooled_body>& body) const {
    body.emplace(settings_.temporary_directory, settings_.options.request_buffer);
    const result<> filled = co_await body->fill(asked);
    if (filled) co_return 0U;
    if (body->disk_status() != 0) {
        report(gateway_event::trouble, nullptr, "storing the body of a request", filled.error());
        co_return body->disk_status();
    }
    if (filled.error() == errc::body_too_large) co_return 413U;
    co_return fail(filled);
}

task<result<unsigned>> fastcgi_core::ask(call& with) const {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    using failure = fastcgi_exchange::failure;
    backend_search search{*backends_, with.on.connections, with.asked.peer().address(),
                          settings_.options.wait};
    const repeatable may_repeat{!with.is_streamed && is_idempotent(with.asked.method())};
    bool was_sent = false; // to a backend, which may have worked on it
    while (auto lease = search.next()) {
        for (bool is_renewed = false;; is_renewed = true) {
            // A connection that is about to be made, unless a place is waited for.
            const std::size_t at = lease->index();
            if ((is_renewed || with.on.connections.idle(at) == 0) && search.take_place(*lease)) {
                lease->waits_on_new();
            }
            now_or_task<result<backend_connection>> borrowing =
                search.borrow(*lease, is_renewed, may_repeat);
            result<backend_connection> connection = co_await std::move(borrowing);
            if (!connection) {
                if (within.stopped()) co_return fail(connection);
                const no_connection judged = backend_search::judge(connection.error());
                with.status = judged.status;
                if (judged.kind == gateway_event::failed) lease->failed();
                report(judged.kind, &*lease, judged.doing, connection.error());
                break;
            }
            if (search.has_waited() && exchange::of(with.asked).has_client_left()) {
                with.on.connections.give_back(*lease, *std::move(connection));
                co_return 503U;
            }
            if (!connection->is_reused()) lease->waits_on_new();
            async_reader_ref source;
            if (with.size != 0) {
                source =
                    with.is_streamed ? async_reader_ref{with.asked} : async_reader_ref{*with.body};
            }
            if (with.body) with.body->rewind();
            request_sender sender{with.front.bytes(), source, with.size,
                                  settings_.options.send_idle};
            message_lines messages{settings_.options.report, settings_.options.report_context};
            client_watch watch{exchange::of(with.asked).native_handle(), lease->place()};
            with.on.connections.watch(*lease, watch);
            fastcgi_exchange exchange{
                settings_, with.on.connections, *lease, *std::move(connection), sender, messages};
            auto opening = watch.of(exchange.open());
            const result<> opened = co_await std::move(opening);
            watch.unlink();
            if (opened) {
                if (lease->succeeded()) {
                    report(gateway_event::recovered, &*lease, "answering again", {});
                }
                co_return co_await pass_on(with, exchange, *lease);
            }
            if (watch.must_end() && !within.stopped()) co_return 503U;
            const failure what = exchange.why_failed();
            if (what == failure::source && with.body) {
                report(gateway_event::trouble, &*lease, "reading a stored body", opened.error());
                co_return 500U;
            }
            if (what == failure::stopped || what == failure::source) {
                if (opened.error() == errc::body_too_large) co_return 413U;
                co_return fail(opened);
            }
            was_sent = was_sent || (sender.has_sent() && what != failure::overloaded);
            const bool can_repeat = !exchange.has_begun() &&
                                    (!was_sent || is_idempotent(with.asked.method())) &&
                                    !(with.is_streamed && sender.has_read_source());
            // The backend has closed a kept connection in the moment in which it was used.
            if (what == failure::ended && exchange.is_reused() && !is_renewed && can_repeat) {
                continue;
            }
            switch (what) {
            case failure::overloaded:
                with.status = 503;
                report(gateway_event::failed, &*lease, "the backend is overloaded", opened.error());
                if (with.is_streamed && sender.has_read_source()) co_return 503U;
                break;
            case failure::timed_out:
                lease->failed();
                report(gateway_event::failed, &*lease, "waiting for an answer", opened.error());
                // Another attempt would make the client wait twice, and the script run twice.
                co_return 504U;
            case failure::nonsense:
                report(gateway_event::bad_answer, &*lease, "reading the head of an answer",
                       opened.error());
                co_return 502U;
            default:
                // That a kept connection has ended says nothing about the backend.
                if (!exchange.is_reused()) lease->failed();
                report(gateway_event::failed, &*lease, "waiting for an answer", opened.error());
                with.status = 502;
                if (!can_repeat) co_return 502U;
                break;
            }
            break;
        }
    }
    co_return with.status;
}

void fastcgi_core::report(gateway_event kind, const backend_lease* at, std::string_view text,
                          std::error_code why) const noexcept {
    const fastcgi_options& options = settings_.options;
    if (options.report == nullptr) return;
    options.report({.kind = kind,
                    .backend = at != nullptr ? at->name() : std::string_view{},
                    .text = text,
                    .error = why},
                   options.report_context);
}

} // namespace simplenet::v0::http::detail
