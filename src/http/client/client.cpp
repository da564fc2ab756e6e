#include <simplenet/http/client.hpp>

#include "http/client/client_core.hpp"
#include "http/client/open_websocket.hpp"

#include <simplenet/http/errc.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::http {

namespace detail {

namespace {

using clock = std::chrono::steady_clock;

task<result<client_response>> refuse(std::error_code why) {
    co_return fail(why);
}

/// Sends a request, and those that its answers redirect to.
task<result<client_response>> send_all(std::shared_ptr<client_core> core, owned_request asked) {
    const client_options& options = core->settings->options();
    const auto until = after(clock::now(), options.total);
    std::vector<std::string> visited; // methods and URLs
    for (unsigned redirects = 0;; ++redirects) {
        auto answered = co_await exchange_once(*core, asked, until);
        if (!answered) co_return fail(answered);
        std::unique_ptr<client_exchange> exchange = *std::move(answered);
        if (options.redirects == 0) co_return client_access::make(std::move(exchange));
        visited.push_back(asked.method + ' ' + std::string{exchange->url()});
        const result<bool> goes_on = redirect(asked, exchange->status(), exchange->fields());
        if (!goes_on) co_return fail(goes_on);
        if (!*goes_on) co_return client_access::make(std::move(exchange));
        const std::string next = asked.method + ' ' + text_of(asked.to);
        const bool is_circle = std::ranges::find(visited, next) != visited.end();
        if (redirects == options.redirects || is_circle) co_return fail(errc::too_many_redirects);
        co_await exchange->drain();
    }
}

} // namespace
} // namespace detail

client::client(const client_options& options)
    : core_{std::make_shared<detail::client_core>(options)} {}

client::~client() {
    core_->pool.reset(); // calls in progress keep the rest
}

task<result<client_response>> client::get(std::string_view url) {
    return send({.url = url});
}

task<result<client_response>> client::send(const client_request& request) {
    auto taken = detail::take_request(request, core_->settings->options().decompress);
    if (!taken) return detail::refuse(taken.error());
    return detail::send_all(core_, *std::move(taken));
}

task<result<websocket>> client::websocket(std::string_view url, const websocket_options& options) {
    return detail::open_websocket(core_, url, options);
}

std::size_t client::connections() const noexcept {
    return core_->pool->size();
}
std::size_t client::idle_connections() const noexcept {
    return core_->pool->idle();
}

// --- client_response -----------------------------------------------------------------------------

client_response::client_response(std::unique_ptr<detail::client_exchange> exchange) noexcept
    : exchange_{std::move(exchange)} {}
client_response::client_response(client_response&& other) noexcept = default;
client_response& client_response::operator=(client_response&& other) noexcept = default;
client_response::~client_response() = default;

unsigned client_response::status() const noexcept {
    return exchange_->status();
}
std::string_view client_response::reason() const noexcept {
    return exchange_->reason();
}
unsigned client_response::version() const noexcept {
    return exchange_->version();
}
const fields& client_response::fields() const noexcept {
    return exchange_->fields();
}
const fields& client_response::trailers() const noexcept {
    return exchange_->trailers();
}
std::string_view client_response::url() const noexcept {
    return exchange_->url();
}
std::optional<std::uint64_t> client_response::content_length() const noexcept {
    return exchange_->content_length();
}
bool client_response::is_decompressed() const noexcept {
    return exchange_->is_decompressed();
}
task<result<std::size_t>> client_response::read_some(mutable_buffer into) {
    return exchange_->read_some(into);
}
task<result<std::string>> client_response::read_all(std::size_t limit) {
    return exchange_->read_all(limit);
}

} // namespace simplenet::v0::http
