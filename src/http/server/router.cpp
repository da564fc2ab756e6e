#include <simplenet/http/router.hpp>

#include "http/server/route_table.hpp"

#include <simplenet/core/detail/contract.hpp>

namespace simplenet::v0::http {

router::router()
    : table_{std::make_unique<detail::route_table>()} {}
router::router(const router& other)
    : table_{other.table_ ? std::make_unique<detail::route_table>(*other.table_) : nullptr} {}
router::router(router&& other) noexcept = default;
router& router::operator=(const router& other) {
    if (this != &other) *this = router{other};
    return *this;
}
router& router::operator=(router&& other) noexcept = default;
router::~router() = default;

router& router::add(std::string_view method, std::string_view pattern,
                    std::shared_ptr<detail::route_handler> handler, const route_options& options) {
    SIMPLENET_EXPECTS(table_ != nullptr, "a router was used after it was moved from");
    table_->add(pattern, {std::string{method}, std::move(handler), options.body, {}});
    return *this;
}

router& router::add_fallback(std::shared_ptr<detail::route_handler> handler,
                             const route_options& options) {
    SIMPLENET_EXPECTS(table_ != nullptr, "a router was used after it was moved from");
    table_->set_fallback({{}, std::move(handler), options.body, {}});
    return *this;
}

} // namespace simplenet::v0::http
