#include <simplenet/http/fastcgi.hpp>

#include "http/fastcgi/fastcgi_core.hpp"
#include "http/server/exchange.hpp"

namespace simplenet::v0::http {

fastcgi_handler::fastcgi_handler(const fastcgi_options& options, std::string_view prefix)
    : core_{std::make_shared<const detail::fastcgi_core>(options, prefix)} {}
fastcgi_handler::fastcgi_handler(const fastcgi_handler& other) noexcept = default;
fastcgi_handler::fastcgi_handler(fastcgi_handler&& other) noexcept = default;
fastcgi_handler& fastcgi_handler::operator=(const fastcgi_handler& other) noexcept = default;
fastcgi_handler& fastcgi_handler::operator=(fastcgi_handler&& other) noexcept = default;
fastcgi_handler::~fastcgi_handler() = default;

task<result<>> fastcgi_handler::operator()(request& asked, response& answer) const {
    const result<unsigned> status = co_await core_->attempt(asked, answer);
    if (!status) co_return fail(status);
    if (*status == 0) co_return result<>{};
    co_return co_await detail::exchange::of(asked).answer_with(*status);
}

task<result<unsigned>> fastcgi_handler::attempt(request& asked, response& answer) const {
    return core_->attempt(asked, answer);
}

std::vector<backend_status> fastcgi_handler::backends() const {
    return core_->backends()->status();
}

} // namespace simplenet::v0::http
