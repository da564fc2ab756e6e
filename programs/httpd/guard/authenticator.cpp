#include "httpd/guard/authenticator.hpp"

#include <simplenet/runtime/run_blocking.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#if SIMPLENET_HTTPD_TLS
#include <openssl/hmac.h>
#endif

namespace httpd {

using simplenet::result;
using simplenet::task;
using simplenet::http::basic_credentials;

namespace {

constexpr std::size_t most_known = 1024;
constexpr std::chrono::minutes known_for{1};
constexpr unsigned most_checks = 4;

/// A place among those that compute a hash. Belongs to the computation, which goes on when its
/// request is stopped.
class place {
public:
    explicit place(std::shared_ptr<std::atomic<unsigned>> taken) noexcept
        : taken_{std::move(taken)} {
        is_free_ = taken_->fetch_add(1) < most_checks;
    }
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place() { taken_->fetch_sub(1); }

    [[nodiscard]] bool is_free() const noexcept { return is_free_; }

private:
    std::shared_ptr<std::atomic<unsigned>> taken_;
    bool is_free_;
};

} // namespace

authenticator::authenticator(password_file users)
    : users_{std::make_shared<const password_file>(std::move(users))} {
    std::random_device random; // getrandom(2)
    for (std::byte& each : secret_)
        each = static_cast<std::byte>(random());
}

std::size_t authenticator::digest_hash::operator()(const digest& of) const noexcept {
    std::size_t first = 0;
    std::memcpy(&first, of.data(), sizeof first);
    return first;
}

std::optional<authenticator::digest>
authenticator::digest_of([[maybe_unused]] const basic_credentials& given) const {
#if SIMPLENET_HTTPD_TLS
    const std::string text = given.user + ':' + given.password; // a user has no colon
    digest made;
    unsigned size = 0;
    const unsigned char* const done =
        ::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
               reinterpret_cast<const unsigned char*>(text.data()), text.size(),
               reinterpret_cast<unsigned char*>(made.data()), &size);
    if (done != nullptr && size == made.size()) return made;
#endif
    return std::nullopt;
}

bool authenticator::remembers(const digest& of) {
    const auto found = known_.find(of);
    if (found == known_.end()) return false;
    if (found->second > clock::now()) return true;
    known_.erase(found);
    return false;
}

void authenticator::remember(const digest& of) {
    if (known_.size() >= most_known) {
        const auto now = clock::now();
        std::erase_if(known_, [&](const auto& each) { return each.second <= now; });
    }
    if (known_.size() >= most_known) known_.erase(known_.begin()); // any: it is asked once more
    known_.insert_or_assign(of, clock::now() + known_for);
}

task<authenticator::verdict> authenticator::check(const basic_credentials& given) {
    const std::optional<digest> proof = digest_of(given);
    if (proof) {
        const std::lock_guard locked{mutex_};
        if (remembers(*proof)) co_return verdict::right;
    }
    auto taken = std::make_shared<const place>(checking_);
    if (!taken->is_free()) co_return verdict::busy;
    auto compare = [users = users_, user = given.user, password = given.password,
                    taken = std::move(taken)] { return users->matches(user, password); };
    const result<bool> matches = co_await simplenet::run_blocking(compare);
    if (!matches) co_return verdict::busy; // no threads, or the request was stopped
    if (!*matches) co_return verdict::wrong;
    if (proof) {
        const std::lock_guard locked{mutex_};
        remember(*proof);
    }
    co_return verdict::right;
}

} // namespace httpd
