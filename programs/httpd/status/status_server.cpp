#include "httpd/status/status_server.hpp"

#include "httpd/config/text.hpp"
#include "httpd/serve/host_table.hpp"
#include "httpd/status/metrics_text.hpp"
#include "httpd/status/status_json.hpp"
#include "httpd/status/status_page.hpp"

#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/insight/write_metrics.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/runtime/run_blocking.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace httpd {

namespace {

using namespace std::chrono_literals;
using simplenet::result;
using simplenet::task;
using simplenet::http::request;
using simplenet::http::response;

/// For all answers: nobody keeps them, and no page of another site embeds or reads them.
response& with_common_fields(response& answer) {
    return answer.set("Cache-Control", "no-store")
        .set("X-Content-Type-Options", "nosniff")
        .set("Cross-Origin-Resource-Policy", "same-origin");
}

auto health_handler(std::shared_ptr<const status_board> board) {
    return [board = std::move(board)](request&, response& answer) -> task<result<>> {
        const bool ends = board->is_ending();
        with_common_fields(answer).status(ends ? 503 : 200);
        const std::string_view text = ends ? "ending\n" : "ok\n";
        co_return co_await answer.send("text/plain; charset=utf-8", text);
    };
}

task<result<>> page(request&, response& answer) {
    static const std::string policy = [] {
        std::string text = "default-src 'none'; connect-src 'self'; img-src data:; script-src "
                           "'sha256-";
        text.append(status_script_hash).append("'; style-src 'sha256-").append(status_style_hash);
        return text + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    }();
    with_common_fields(answer)
        .set("Content-Security-Policy", policy)
        .set("Referrer-Policy", "no-referrer");
    co_return co_await answer.send("text/html; charset=utf-8", status_page);
}

/// Answers with a text that `make` makes of the figures, off the loop.
template <class Function>
auto figures_handler(std::shared_ptr<const status_board> board, std::string_view type,
                     Function make) {
    return [board = std::move(board), type, make](request&, response& answer) -> task<result<>> {
        // Shared: nobody waits for a call that has begun when the program ends.
        auto collect = [board, make] { return make(board->figures()); };
        const std::string text = co_await simplenet::run_blocking(collect);
        co_return co_await with_common_fields(answer).send(type, text);
    };
}

/// Ours, followed by those of the library about loops and servers.
std::string all_metrics(const status_figures& of) {
    std::ostringstream library;
    simplenet::write_metrics(library);
    return metrics_text(of) + library.str();
}

using names = std::shared_ptr<const std::vector<std::string>>;

bool may_be_asked_as(std::string_view host, const std::vector<std::string>& names) {
    host = name_of_host(host);
    if (host.empty() || equal_without_case(host, "localhost")) return true;
    std::string_view address = host;
    if (address.starts_with('[') && address.ends_with(']'))
        address = address.substr(1, address.size() - 2);
    if (simplenet::ip_address::parse(address)) return true;
    return std::ranges::any_of(names, [host](std::string_view name) {
        if (!name.starts_with("*.")) return equal_without_case(host, name);
        name.remove_prefix(1); // the dot is part of it
        return host.size() > name.size() &&
               equal_without_case(host.substr(host.size() - name.size()), name);
    });
}

task<result<>> refuse_name(response& answer) {
    co_return co_await with_common_fields(answer).status(421).send(
        "text/plain; charset=utf-8", "this name is not one of `hosts` of [status]\n");
}

/// `next`, for those who ask by a name that may be used.
template <class Handler>
auto named(names allowed, Handler next) {
    return
        [allowed = std::move(allowed), next = std::move(next)](request& asked, response& answer) {
            if (!may_be_asked_as(asked.host(), *allowed)) return refuse_name(answer);
            return next(asked, answer);
        };
}

} // namespace

simplenet::http::router status_routes(std::shared_ptr<const status_board> board,
                                      const std::vector<std::string>& hosts) {
    const auto allowed = std::make_shared<const std::vector<std::string>>(hosts);
    simplenet::http::router routes;
    routes.get("/", named(allowed, page)).get("/health", health_handler(board));
    routes.get("/metrics",
               named(allowed, figures_handler(board, "text/plain; version=0.0.4; charset=utf-8",
                                              all_metrics)));
    routes.get("/status.json",
               named(allowed, figures_handler(std::move(board), "application/json", status_json)));
    return routes;
}

simplenet::http::server_options status_options() {
    simplenet::http::server_options options;
    options.server.max_connections = 100;
    options.server.full = simplenet::when_full::reset;
    options.limits.request_line = 1024;
    options.limits.header_bytes = 8192;
    options.limits.header_count = 50;
    options.limits.body = 1; // none is read; 0 would be unlimited
    options.limits.headers_within = 5s;
    options.limits.body_idle = 5s;
    options.limits.keep_alive = 30s;
    options.limits.send_idle = 10s;
    options.limits.linger = 5s;
    return options;
}

result<status_server> status_server::adopt(
    simplenet::event_loop_group& group, std::vector<simplenet::nonblocking::tcp_listener> sockets,
    std::shared_ptr<const status_board> board, const std::vector<std::string>& hosts) {
    auto made = simplenet::http::server::adopt(
        group, std::move(sockets), status_routes(std::move(board), hosts), status_options());
    if (!made) return simplenet::fail(made);
    return status_server{*std::move(made)};
}

} // namespace httpd
