#include "httpd/guard/authenticator.hpp"

#include "httpd/guard/counted_address.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/runtime/run_on.hpp>
#include <simplenet/threads/cross_channel.hpp>
#include <simplenet/threads/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
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
constexpr unsigned hashing_threads = 4;
constexpr unsigned most_from_one = 4;
constexpr std::size_t most_attempts = 256;

/// Its own, so that a crowd that guesses does not take the threads from files and names.
simplenet::thread_pool& hashing_pool() {
    static simplenet::thread_pool pool{{.threads = hashing_threads, .name = "httpd-hash"}};
    return pool;
}

using digest = std::array<std::byte, 32>;

struct digest_hash {
    std::size_t operator()(const digest& of) const noexcept {
        std::size_t first = 0;
        std::memcpy(&first, of.data(), sizeof first);
        return first;
    }
};

} // namespace

class authenticator::memory : public std::enable_shared_from_this<memory> {
public:
    explicit memory(password_file users)
        : users_{std::move(users)} {
        std::random_device random; // getrandom(2)
        for (std::byte& each : secret_)
            each = static_cast<std::byte>(random());
    }

    /// Some credentials that are compared, for all requests that have them meanwhile.
    class attempt {
    public:
        attempt(std::shared_ptr<memory> in, const basic_credentials& given,
                std::optional<digest> proof, counted_address from)
            : in_{std::move(in)}
            , given_{given}
            , proof_{proof}
            , from_{from} {}
        attempt(const attempt&) = delete;
        attempt& operator=(const attempt&) = delete;
        ~attempt() { in_->end(proof_, from_); }

        /// Whether the caller is the one that compares. Others wait for the end, without a thread.
        [[nodiscard]] bool is_first() noexcept { return !begun_.exchange(true); }
        /// Blocks for as long as the hash takes.
        [[nodiscard]] verdict compare() {
            const bool matches = in_->users_.matches(given_.user, given_.password);
            if (matches && proof_) in_->remember(*proof_);
            outcome_ = matches ? verdict::right : verdict::wrong;
            return outcome_;
        }
        /// Closed once the outcome is known, or never will be.
        [[nodiscard]] simplenet::cross_channel<bool>& end() noexcept { return end_; }
        /// busy: it was not compared, since its request was stopped before.
        [[nodiscard]] verdict outcome() const noexcept { return outcome_; }

    private:
        const std::shared_ptr<memory> in_;
        const basic_credentials given_;
        const std::optional<digest> proof_;
        const counted_address from_;
        std::atomic<bool> begun_ = false;
        std::atomic<verdict> outcome_ = verdict::busy;
        simplenet::cross_channel<bool> end_{0};
    };

    [[nodiscard]] const password_file& users() const noexcept { return users_; }
    /// None in a build without OpenSSL, where nothing is remembered.
    [[nodiscard]] std::optional<digest> digest_of(const basic_credentials& given) const;
    [[nodiscard]] bool remembers(const digest& of);
    /// One that has begun already, or another; null: there is no place.
    [[nodiscard]] std::shared_ptr<attempt> begin(const basic_credentials& given,
                                                 const std::optional<digest>& proof,
                                                 const counted_address& from);

private:
    using clock = std::chrono::steady_clock;

    void remember(const digest& of);
    void end(const std::optional<digest>& proof, const counted_address& from);

    const password_file users_;
    std::array<std::byte, 32> secret_;
    std::mutex mutex_;
    std::unordered_map<digest, clock::time_point, digest_hash> known_; // until when
    std::unordered_map<digest, std::weak_ptr<attempt>, digest_hash> running_;
    std::map<counted_address, unsigned> clients_; // their attempts
    std::size_t attempts_ = 0;
};

std::optional<digest>
authenticator::memory::digest_of([[maybe_unused]] const basic_credentials& given) const {
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

bool authenticator::memory::remembers(const digest& of) {
    const std::lock_guard locked{mutex_};
    const auto found = known_.find(of);
    if (found == known_.end()) return false;
    if (found->second > clock::now()) return true;
    known_.erase(found);
    return false;
}

void authenticator::memory::remember(const digest& of) {
    const std::lock_guard locked{mutex_};
    if (known_.size() >= most_known) {
        const auto now = clock::now();
        std::erase_if(known_, [&](const auto& each) { return each.second <= now; });
    }
    if (known_.size() >= most_known) known_.erase(known_.begin()); // any: it is asked once more
    known_.insert_or_assign(of, clock::now() + known_for);
}

std::shared_ptr<authenticator::memory::attempt>
authenticator::memory::begin(const basic_credentials& given, const std::optional<digest>& proof,
                             const counted_address& from) {
    // They may end here, which takes the lock.
    std::shared_ptr<attempt> joined;
    std::shared_ptr<attempt> made;
    const std::lock_guard locked{mutex_};
    if (proof) {
        if (const auto found = running_.find(*proof); found != running_.end())
            joined = found->second.lock();
        if (joined) return joined;
    }
    if (attempts_ >= most_attempts) return nullptr;
    unsigned& of_client = clients_[from];
    if (of_client >= most_from_one) return nullptr;
    made = std::make_shared<attempt>(shared_from_this(), given, proof, from);
    ++of_client;
    ++attempts_;
    if (proof) running_.insert_or_assign(*proof, made);
    return made;
}

void authenticator::memory::end(const std::optional<digest>& proof, const counted_address& from) {
    const std::lock_guard locked{mutex_};
    if (proof) {
        // The next one with these credentials may have begun since.
        const auto found = running_.find(*proof);
        if (found != running_.end() && found->second.expired()) running_.erase(found);
    }
    if (const auto client = clients_.find(from); --client->second == 0) clients_.erase(client);
    --attempts_;
}

authenticator::authenticator(password_file users)
    : memory_{std::make_shared<memory>(std::move(users))} {}

bool authenticator::is_for(const password_file& users) const noexcept {
    return memory_->users() == users;
}

task<authenticator::verdict> authenticator::check(const basic_credentials& given,
                                                  const simplenet::ip_address& from) {
    const std::optional<digest> proof = memory_->digest_of(given);
    if (proof && memory_->remembers(*proof)) co_return verdict::right;
    const auto attempt = memory_->begin(given, proof, counted_as(from));
    if (!attempt) co_return verdict::busy;
    if (!attempt->is_first()) {
        const auto ended = co_await attempt->end().receive();
        // Otherwise the request was stopped.
        const bool has_ended = !ended && ended.error() == simplenet::errc::end_of_stream;
        co_return has_ended ? attempt->outcome() : verdict::busy;
    }
    // Closes the channel with the computation, also if that never begins.
    std::shared_ptr<memory::attempt> computing{attempt.get(),
                                               [attempt](auto* of) { of->end().close(); }};
    auto compare = [](const std::shared_ptr<memory::attempt>& of) -> result<verdict> {
        return of->compare();
    };
    const result<verdict> outcome =
        co_await simplenet::run_on(hashing_pool(), compare, std::move(computing));
    co_return outcome.value_or(verdict::busy); // the request was stopped
}

} // namespace httpd
