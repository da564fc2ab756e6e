#include "httpd/process/listener_set.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <utility>

#if SIMPLENET_HTTPD_TLS
#include "httpd/process/tls_context.hpp"
#endif

namespace httpd {

namespace http = simplenet::http;
using simplenet::result;
using simplenet::task;

namespace {

/// Whether a server for `left` can go on for `right` with its connections: `right` would let their
/// clients in, too, if the issuers of these are still the same.
bool is_same_kind(const listener& left, const listener& right) noexcept {
    return left.address == right.address && left.tls.has_value() == right.tls.has_value() &&
           (!left.tls || left.tls->client_ca == right.tls->client_ca) &&
           left.proxy_protocol == right.proxy_protocol &&
           left.proxy_from.texts == right.proxy_from.texts;
}

http::router router_of(const configuration& with, const listener& at,
                       const std::shared_ptr<const sites>& what) {
    arrival by;
    if (at.redirect_https) by.https_port = https_port(with.listen);
    return sites::router_for(what, by);
}

[[noreturn]] void refuse(const listener& at, std::error_code why) {
    throw std::runtime_error{"cannot listen at " + at.address.to_string() + ": " + why.message()};
}

} // namespace

listening_sockets listener_set::sockets_for(const listener& at, const passed_sockets& passed,
                                            address_sockets& left) const {
    std::array there{passed.copy(at.address),
                     copy_sockets(at.address)}; // of another kind of server
    for (auto& sockets : there) {
        if (!sockets) refuse(at, sockets.error());
        if (!sockets->empty()) return *std::move(sockets);
    }
    // Several may have the same address with port 0, and each gets a port of its own.
    if (left.at == at.address && at.address.port() != 0) return std::exchange(left.sockets, {});
    simplenet::listen_options options;
    // `[::]:80` beside `0.0.0.0:80` is no conflict.
    options.v6_only = at.address.address().is_v6() && at.address.address().is_any();
    auto opened = open_sockets(group_, at.address, options);
    if (!opened) refuse(at, opened.error());
    return *std::move(opened);
}

listener_set::change listener_set::prepare(const configuration& with,
                                           const std::shared_ptr<const sites>& what,
                                           const passed_sockets& passed, address_sockets left) {
    change next;
    next.grace_ = with.grace;
    for (const listener& each : with.listen) {
        planned made{.is = each, .routes = router_of(with, each, what)};
        made.options.limits = with.limits;
        made.options.on_answered = observer_.on_answered;
        made.options.context = observer_.context;
#if SIMPLENET_HTTPD_TLS
        if (each.tls) {
            made.issuers = issuers_of(*each.tls);
            made.context = make_context(*each.tls);
        }
#endif
        // Several may have the same address, with port 0.
        const auto is_free = [&](const served& one) {
            return std::ranges::find(next.plans_, &one, &planned::goes_on) == next.plans_.end();
        };
        const auto there = std::ranges::find_if(served_, [&](const served& one) {
            return is_same_kind(one.is, each) && one.issuers == made.issuers && is_free(one);
        });
        if (there != served_.end()) {
            made.goes_on = &*there;
        } else {
            made.sockets = sockets_for(each, passed, left);
        }
        next.plans_.push_back(std::move(made));
    }
    return next;
}

std::unique_ptr<http::server> listener_set::begin(planned& by) {
    const std::vector<std::string_view> from{by.is.proxy_from.texts.begin(),
                                             by.is.proxy_from.texts.end()};
    http::server_options options = by.options;
    options.server.proxy = by.is.proxy_protocol;
    options.server.proxy_sources = from;
#if SIMPLENET_HTTPD_TLS
    if (by.context) options.tls = &*by.context;
#endif
    auto server = http::server::adopt(group_, std::move(by.sockets), std::move(by.routes), options);
    if (!server) refuse(by.is, server.error()); // none of the options can be wrong
    return std::make_unique<http::server>(*std::move(server));
}

result<listening_sockets> listener_set::copy_sockets(const simplenet::endpoint& at) const {
    if (at.port() == 0) return listening_sockets{}; // each time another port
    const auto there =
        std::ranges::find(served_, at, [](const served& each) { return each.is.address; });
    if (there == served_.end()) return listening_sockets{};
    return adopt_all(there->server->duplicate_listeners());
}

void listener_set::forget_ended() {
    std::erase_if(ending_, [](const auto& each) { return each->statistics().open == 0; });
}

void listener_set::commit(change next) {
    forget_ended();
    std::vector<served> now;
    now.reserve(next.plans_.size());
    ending_.reserve(ending_.size() + served_.size());
    for (planned& each : next.plans_) {
        std::unique_ptr<http::server> server;
        if (each.goes_on == nullptr) server = begin(each);
        now.push_back({.is = each.is, .issuers = each.issuers, .server = std::move(server)});
    }
    for (planned& each : next.plans_) {
        if (each.goes_on == nullptr) continue;
#if SIMPLENET_HTTPD_TLS
        if (each.context) each.options.tls = &*each.context;
#endif
        // A server of the same kind takes every context and all limits that can be configured.
        if (!each.goes_on->server->replace(std::move(each.routes), each.options))
            throw std::logic_error{"a server of the same kind refused its options"};
    }
    // Nothing fails from here on.
    const std::lock_guard locked{mutex_};
    for (std::size_t index = 0; index < now.size(); ++index) {
        const planned& each = next.plans_[index];
        if (each.goes_on != nullptr) now[index].server = std::move(each.goes_on->server);
    }
    for (served& each : served_) {
        if (!each.server) continue;
        each.server->request_shutdown(next.grace_);
        ending_.push_back(std::move(each.server));
    }
    served_ = std::move(now);
}

task<simplenet::shutdown_report> listener_set::shutdown(std::chrono::nanoseconds grace) {
    std::vector<simplenet::join_handle<simplenet::shutdown_report>> ends;
    for (served& each : served_)
        ends.push_back(simplenet::spawn(each.server->shutdown(grace)));
    for (const auto& each : ending_)
        ends.push_back(simplenet::spawn(each->shutdown(grace)));
    simplenet::shutdown_report whole;
    for (auto& each : ends) {
        const simplenet::shutdown_report one = co_await each;
        whole.drained += one.drained;
        whole.cut += one.cut;
    }
    co_return whole;
}

task<> listener_set::ended_accepting() const {
    const auto is_accepting = [](const auto& each) { return each->is_accepting(); };
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    while (std::ranges::any_of(ending_, is_accepting) && std::chrono::steady_clock::now() < until) {
        const auto slept = co_await simplenet::async_sleep(std::chrono::milliseconds{1});
        if (!slept) co_return;
    }
}

void listener_set::cut() noexcept {
    for (served& each : served_)
        each.server->request_shutdown({});
    for (const auto& each : ending_)
        each->request_shutdown({});
}

std::vector<listener_set::figures> listener_set::all_figures() const {
    const std::lock_guard locked{mutex_};
    std::vector<figures> all;
    for (const served& each : served_) {
        all.push_back({.address = each.server->local_endpoint(),
                       .secure = each.is.tls.has_value(),
                       .statistics = each.server->statistics()});
    }
    return all;
}

} // namespace httpd
