#include <simplenet/http/proxy_handler.hpp>

#include "http/proxy/passage.hpp"
#include "http/proxy/proxy_core.hpp"
#include "http/server/exchange.hpp"

namespace simplenet::v0::http {

namespace detail {

namespace {

task<result<unsigned>> attempt_by(std::shared_ptr<const proxy_core> core, request& asked,
                                  response& answer) {
    passage through{std::move(core), asked, answer};
    co_return co_await through.run();
}

task<result<>> answer_by(std::shared_ptr<const proxy_core> core, request& asked, response& answer) {
    passage through{std::move(core), asked, answer};
    const result<unsigned> status = co_await through.run();
    if (!status) co_return fail(status);
    if (*status == 0) co_return result<>{};
    co_return co_await exchange::of(asked).answer_with(*status);
}

} // namespace
} // namespace detail

proxy_handler::proxy_handler(const proxy_options& options)
    : core_{std::make_shared<detail::proxy_core>(options)} {}

task<result<>> proxy_handler::operator()(request& asked, response& answer) const {
    return detail::answer_by(core_, asked, answer);
}

task<result<unsigned>> proxy_handler::attempt(request& asked, response& answer) const {
    return detail::attempt_by(core_, asked, answer);
}

std::vector<backend_status> proxy_handler::backends() const {
    return core_->backends()->status();
}

} // namespace simplenet::v0::http
