#include "httpd/serve/guard.hpp"

#include <simplenet/http/basic_credentials.hpp>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace httpd {

using simplenet::task;
using simplenet::http::basic_credentials;
using simplenet::http::request;
using simplenet::http::response;

namespace {

/// The one that another site or the configuration before has for the same users of this file, so
/// that a reload does not forget who has given the right password: many clients would have to wait
/// for their hashes at once.
std::shared_ptr<authenticator> shared_authenticator(const std::string& file, password_file users) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<authenticator>> all;
    const std::lock_guard locked{mutex};
    std::weak_ptr<authenticator>& known = all[file];
    auto found = known.lock();
    if (found && found->is_for(users)) return found;
    auto made = std::make_shared<authenticator>(std::move(users));
    known = made;
    return made;
}

std::shared_ptr<authenticator> authenticator_of(const std::string& file, authenticators& known) {
    std::shared_ptr<authenticator>& slot = known[file];
    if (!slot) {
        std::string problem;
        auto users = password_file::read(file, problem);
        if (!users) {
            if (problem.empty()) problem = users.error().message();
            throw std::runtime_error{file + ": " + problem};
        }
        slot = shared_authenticator(file, *std::move(users));
    }
    return slot;
}

/// RFC 7617, section 2.1; the realm is a quoted string.
std::string challenge_for(const std::string& realm) {
    std::string text = "Basic realm=\"";
    for (const char each : realm) {
        if (each == '"' || each == '\\') text += '\\';
        text += each;
    }
    return text + "\", charset=\"UTF-8\"";
}

} // namespace

guard::guard(const site& of, const route* over, authenticators& known) {
    const auto pick = [over](const auto& of_site, const auto& of_route) -> const auto& {
        return over != nullptr && of_route(*over) ? *of_route(*over) : of_site;
    };
    allow_ = pick(of.allow, [](const route& each) -> const auto& { return each.allow; }).set;
    deny_ = pick(of.deny, [](const route& each) -> const auto& { return each.deny; }).set;
    const authentication& auth =
        pick(of.auth, [](const route& each) -> const auto& { return each.auth; });
    if (!auth.file.empty()) {
        users_ = authenticator_of(auth.file, known);
        challenge_ = challenge_for(auth.realm);
    }
    const rate_limit& rate =
        pick(of.rate, [](const route& each) -> const auto& { return each.rate; });
    if (rate.requests != 0) {
        rate_ = std::make_shared<rate_limiter>(rate.requests, rate.per, rate.burst);
    }
}

task<unsigned> guard::check(request& asked, response& answer, const guard* before) const {
    const simplenet::ip_address from = asked.peer().address();
    if (deny_.contains(from)) co_return 403;
    if (!allow_.empty() && !allow_.contains(from)) co_return 403;
    if (rate_ && (before == nullptr || before->rate_ != rate_)) {
        if (const auto wait = rate_->take(from)) {
            const auto seconds = std::chrono::ceil<std::chrono::seconds>(*wait);
            answer.set("Retry-After", std::to_string(seconds.count()));
            co_return 429;
        }
    }
    if (!users_) co_return 0;
    const auto given = basic_credentials::of(asked.fields());
    auto verdict = authenticator::verdict::wrong;
    if (given) verdict = co_await users_->check(*given, from);
    if (verdict == authenticator::verdict::busy) {
        answer.set("Retry-After", "1");
        co_return 503;
    }
    if (verdict == authenticator::verdict::wrong) {
        answer.set("WWW-Authenticate", challenge_);
        co_return 401;
    }
    asked.set_user(given->user);
    co_return 0;
}

} // namespace httpd
