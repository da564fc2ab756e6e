#include "httpd/process/listener_set.hpp"

#include <simplenet/coro/spawn.hpp>

#include <algorithm>
#include <optional>
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

/// Whether a server for one can go on as a server for the other.
bool is_same_kind(const listener& left, const listener& right) noexcept {
    return left.address == right.address && left.tls.has_value() == right.tls.has_value() &&
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

/// What is to be done for one address. Nothing has been changed before it is.
struct listener_set::planned {
    listener is;
    served* goes_on = nullptr;              // replaced in place
    std::unique_ptr<http::server> server{}; // else a new one
    http::server_options options{};
#if SIMPLENET_HTTPD_TLS
    std::optional<simplenet::tls::context> context{}; // of `options`
#endif
};

listener_set::planned listener_set::plan(const configuration& with, const listener& at,
                                         passed_sockets& passed,
                                         const std::shared_ptr<const sites>& what) {
    planned made{.is = at};
    made.options.limits = with.limits;
    made.options.on_answered = observer_.on_answered;
    made.options.context = observer_.context;
#if SIMPLENET_HTTPD_TLS
    if (at.tls) made.context = make_context(*at.tls);
#endif
    const auto there = std::ranges::find_if(
        served_, [&](const served& each) { return is_same_kind(each.is, at); });
    if (there != served_.end()) {
        made.goes_on = &*there;
        return made;
    }
    const std::vector<std::string_view> from{at.proxy_from.texts.begin(),
                                             at.proxy_from.texts.end()};
    http::server_options options = made.options;
    options.server.proxy = at.proxy_protocol;
    options.server.proxy_sources = from;
    // `[::]:80` beside `0.0.0.0:80` is no conflict.
    options.server.listen.v6_only = at.address.address().is_v6() && at.address.address().is_any();
#if SIMPLENET_HTTPD_TLS
    if (made.context) options.tls = &*made.context;
#endif
    listening_sockets sockets = passed.take(at.address);
    const auto same_address =
        std::ranges::find(served_, at.address, [](const served& each) { return each.is.address; });
    if (same_address != served_.end()) {
        auto copies = same_address->server->duplicate_listeners();
        if (!copies) refuse(at, copies.error());
        for (simplenet::unique_fd& each : *copies) {
            auto adopted = simplenet::nonblocking::tcp_listener::adopt(std::move(each));
            if (!adopted) refuse(at, adopted.error());
            sockets.push_back(*std::move(adopted));
        }
    }
    auto routes = router_of(with, at, what);
    auto server = sockets.empty()
                      ? http::server::listen(group_, at.address, std::move(routes), options)
                      : http::server::adopt(group_, std::move(sockets), std::move(routes), options);
    if (!server) refuse(at, server.error());
    made.server = std::make_unique<http::server>(*std::move(server));
    return made;
}

void listener_set::forget_ended() {
    std::erase_if(ending_, [](const auto& each) { return each->statistics().open == 0; });
}

void listener_set::serve(const configuration& with, const std::shared_ptr<const sites>& what,
                         passed_sockets& passed) {
    forget_ended();
    std::vector<planned> plans;
    for (const listener& each : with.listen)
        plans.push_back(plan(with, each, passed, what));
    std::vector<served> now;
    now.reserve(plans.size());
    ending_.reserve(ending_.size() + served_.size());
    // Nothing fails from here on but memory.
    const std::lock_guard locked{mutex_};
    for (planned& each : plans) {
        if (each.goes_on != nullptr) {
#if SIMPLENET_HTTPD_TLS
            if (each.context) each.options.tls = &*each.context;
#endif
            static_cast<void>(
                each.goes_on->server->replace(router_of(with, each.is, what), each.options));
            each.server = std::move(each.goes_on->server);
        }
        now.push_back({.is = std::move(each.is), .server = std::move(each.server)});
    }
    for (served& each : served_) {
        if (!each.server) continue;
        each.server->request_shutdown(with.grace);
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
