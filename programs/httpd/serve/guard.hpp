#pragma once
// httpd::guard: who may ask, how often, and as whom. What a route has of it, or its site.

#include "httpd/config/configuration.hpp"
#include "httpd/guard/authenticator.hpp"
#include "httpd/guard/rate_limiter.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>

#include <map>
#include <memory>
#include <string>

namespace httpd {

/// Password files that several routes use are read once.
using authenticators = std::map<std::string, std::shared_ptr<authenticator>>;

/// Shared by all loops; any thread.
class guard {
public:
    /// What the route `over` sets, and the rest from its site. null: there is no route.
    ///
    /// Throws std::runtime_error if a password file cannot be used.
    guard(const site& of, const route* over, authenticators& known);
    /// The same limits as `site_guard`, where a route has none of its own.
    void share_rate(const guard& site_guard) noexcept { rate_ = site_guard.rate_; }

    /// Whether everybody may pass.
    [[nodiscard]] bool is_open() const noexcept {
        return allow_.empty() && deny_.empty() && !users_ && !rate_;
    }
    /// Whether a request may pass, with its user set. First the addresses, then the rate, then the
    /// password: whoever may not ask at all costs no hash.
    ///
    /// @return 0, or the status of the answer, whose fields have been set: 401, 403, 429, 503.
    /// @param before  The guard that has let the request pass already: its rate is not counted
    ///                again.
    [[nodiscard]] simplenet::task<unsigned> check(simplenet::http::request& asked,
                                                  simplenet::http::response& answer,
                                                  const guard* before = nullptr) const;

private:
    simplenet::address_set allow_;
    simplenet::address_set deny_;
    std::shared_ptr<authenticator> users_; // null: nobody is asked
    std::string challenge_;                // of WWW-Authenticate
    std::shared_ptr<rate_limiter> rate_;   // null: no limit
};

} // namespace httpd
