#include <simplenet/http/router.hpp>

#include "http/files/file_server.hpp"
#include "http/server/route_table.hpp"
#include "http/websocket/route.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/http/proxy_handler.hpp>

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

router& router::files(std::string_view prefix, std::string_view directory,
                      const static_options& options) {
    SIMPLENET_EXPECTS(prefix.starts_with('/'), "the prefix of files does not begin with '/'");
    while (prefix.ends_with('/'))
        prefix.remove_suffix(1);
    std::shared_ptr<detail::route_handler> handler =
        detail::make_static_handler(directory, options);
    if (!prefix.empty()) add("GET", prefix, detail::make_slash_redirect(), {});
    return add("GET", std::string{prefix} + "/{path...}", std::move(handler), {});
}

router& router::proxy(std::string_view prefix, const proxy_options& options) {
    SIMPLENET_EXPECTS(prefix.starts_with('/'), "the prefix of a proxy does not begin with '/'");
    while (prefix.ends_with('/'))
        prefix.remove_suffix(1);
    const proxy_handler handler{options};
    if (!prefix.empty()) any(prefix, handler);
    return any(std::string{prefix} + "/{path...}", handler);
}

router& router::fastcgi(std::string_view prefix, const fastcgi_options& options) {
    SIMPLENET_EXPECTS(prefix.starts_with('/'), "the prefix of fastcgi does not begin with '/'");
    while (prefix.ends_with('/'))
        prefix.remove_suffix(1);
    const fastcgi_handler handler{options, prefix};
    if (!prefix.empty()) any(prefix, handler);
    return any(std::string{prefix} + "/{path...}", handler);
}

router& router::add_websocket(std::string_view pattern,
                              std::shared_ptr<detail::websocket_handler> handler,
                              const websocket_options& options) {
    return add("GET", pattern, detail::make_websocket_route(std::move(handler), options), {});
}

router& router::add_fallback(std::shared_ptr<detail::route_handler> handler,
                             const route_options& options) {
    SIMPLENET_EXPECTS(table_ != nullptr, "a router was used after it was moved from");
    table_->set_fallback({{}, std::move(handler), options.body, {}});
    return *this;
}

} // namespace simplenet::v0::http
