#pragma once
// httpd::served_site: a site of the configuration, with everything that answers its requests.

#include "httpd/config/configuration.hpp"
#include "httpd/serve/guard.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/compression_options.hpp>
#include <simplenet/http/fastcgi.hpp>
#include <simplenet/http/file_handler.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/proxy_handler.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/ip/address_set.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpd {

/// What gateways tell, and to whom.
struct gateway_listener {
    simplenet::http::gateway_reporter report = nullptr;
    void* context = nullptr;
};

/// What the listener of a request says about it.
struct arrival {
    /// Where `https` is, if what has not come by it is redirected there.
    std::optional<std::uint16_t> https_port;
    /// No site has the name that was asked for, so nobody is redirected there.
    bool is_foreign = false;
};

/// A backend of a route, at a moment.
struct site_backend {
    std::string site;  ///< Its name().
    std::string route; ///< Its match, as in the configuration.
    simplenet::http::backend_status status;
};

/// The outcome if it is known at once, otherwise a task.
using answering = simplenet::http::now_or_task<simplenet::result<>>;

/// Immutable; shared by all loops, and called by several at once. Lives as long as a request uses
/// it, after a reload too.
class served_site {
public:
    /// @param of  Borrowed.
    ///
    /// Throws std::system_error or std::runtime_error if the root, a password file or a backend
    /// cannot be used; what() names it.
    served_site(const site& of, const gateway_listener& listener);
    served_site(const served_site&) = delete;
    served_site& operator=(const served_site&) = delete;
    ~served_site() = default;

    [[nodiscard]] answering serve(simplenet::http::request& asked,
                                  simplenet::http::response& answer, const arrival& by) const;

    /// The first of its hosts; "-" if it has every name.
    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    /// Those of all its routes.
    [[nodiscard]] std::vector<site_backend> backends() const;

private:
    using request = simplenet::http::request;
    using response = simplenet::http::response;
    using outcome = simplenet::task<simplenet::result<>>;
    using attempted = simplenet::http::now_or_task<simplenet::result<unsigned>>;

    struct header_set {
        std::vector<header> always;
        std::vector<header> over_tls; // without it they must not be sent
    };
    struct served_route {
        const route* is = nullptr; // null: files, as no route says anything else
        httpd::guard guard;
        header_set headers;
        std::uint64_t body = 0; // 0: unlimited
        std::optional<simplenet::http::fastcgi_handler> fastcgi = {};
        std::optional<simplenet::http::proxy_handler> proxy = {};

        [[nodiscard]] route_action action() const noexcept {
            return is == nullptr ? route_action::files : is->action;
        }
    };

    /// Of the site, or of `over` and the site.
    [[nodiscard]] static header_set headers_of(const site& of, const route* over);
    [[nodiscard]] const served_route& route_for(std::string_view path) const noexcept;
    [[nodiscard]] bool is_script(std::string_view path) const noexcept;
    /// Sets what belongs to every answer of the route.
    void prepare(const served_route& to, request& asked, response& answer) const;
    void learn_client(request& asked) const;
    [[nodiscard]] static outcome redirect_to_https(std::uint16_t port, request& asked,
                                                   response& answer);
    [[nodiscard]] outcome serve_guarded(const served_route& to, request& asked,
                                        response& answer) const;

    // `rerouted`: how often the path has been replaced.
    [[nodiscard]] answering act(const served_route& to, request& asked, response& answer,
                                unsigned rerouted) const;
    [[nodiscard]] outcome reroute(const served_route& from, std::string_view path, request& asked,
                                  response& answer, unsigned rerouted) const;
    [[nodiscard]] answering serve_files(const served_route& to, request& asked, response& answer,
                                        unsigned rerouted) const;
    /// Answers a path that ends in a slash: with its index if there is one, otherwise as
    /// serve_file().
    [[nodiscard]] outcome serve_directory(const served_route& to, request& asked, response& answer,
                                          unsigned rerouted) const;
    [[nodiscard]] answering serve_file(request& asked, response& answer) const;
    [[nodiscard]] outcome serve_fallback(const served_route& to, request& asked, response& answer,
                                         unsigned rerouted) const;
    /// The path of the index file of the directory at the request's path, which ends in a slash.
    [[nodiscard]] simplenet::task<std::optional<std::string>> index_of(request& asked) const;
    [[nodiscard]] static answering answer_fixed(const served_route& to, response& answer);
    [[nodiscard]] outcome redirect(const served_route& to, request& asked, response& answer) const;
    [[nodiscard]] outcome pass_on(const served_route& to, request& asked, response& answer) const;
    /// Awaits `attempt`, and answers with the status that it leaves, if any.
    [[nodiscard]] outcome end_attempt(attempted attempt, request& asked, response& answer) const;
    /// Answers with an error: with the site's page for it, else with a short one.
    [[nodiscard]] outcome answer_error(unsigned status, request& asked, response& answer) const;

    const site& is_;
    std::string name_;
    std::optional<simplenet::http::file_handler> files_; // none without a root
    std::vector<std::string> script_suffixes_;           // lower case
    std::vector<std::string_view> compressed_types_;
    simplenet::http::compression_options compression_;
    std::vector<served_route> routes_; // as in the configuration
    served_route otherwise_;           // where no route matches
};

} // namespace httpd
