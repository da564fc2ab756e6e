#include "tls/session_store.hpp"

#include <simplenet/tls/session_cache.hpp>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <new>
#include <utility>

namespace simplenet::v0::tls {
namespace detail {

namespace {

/// Sessions of one key: more are no use, since a client rarely has more connections at once.
constexpr std::size_t most_of_a_key = 8;

std::time_t begin_of(const SSL_SESSION& session) noexcept {
#if OPENSSL_VERSION_PREREQ(3, 3)
    return SSL_SESSION_get_time_ex(&session);
#else
    return SSL_SESSION_get_time(&session);
#endif
}

bool has_expired(const SSL_SESSION& session) noexcept {
    return begin_of(session) + SSL_SESSION_get_timeout(&session) < std::time(nullptr);
}

constexpr auto older = [](const auto& left, const auto& right) {
    return left.second->number < right.second->number;
};

} // namespace

void session_store::put(std::string_view key, session_ptr session) noexcept {
    if (most_ == 0 || SSL_SESSION_is_resumable(session.get()) != 1) return;
    try {
        const std::lock_guard locked{mutex_};
        const auto [first, last] = by_key_.equal_range(key);
        if (static_cast<std::size_t>(std::distance(first, last)) >= most_of_a_key) {
            drop(std::min_element(first, last, older)->second);
        } else if (entries_.size() >= most_) {
            drop(entries_.begin());
        }
        entries_.push_back({std::string{key}, std::move(session), next_number_++});
        const auto added = std::prev(entries_.end());
        try {
            by_key_.emplace(added->key, added);
        } catch (...) {
            entries_.erase(added);
            throw;
        }
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): resumption only saves time
    }
}

session_ptr session_store::take(std::string_view key) noexcept {
    const std::lock_guard locked{mutex_};
    for (;;) {
        const auto [first, last] = by_key_.equal_range(key);
        if (first == last) return nullptr;
        const auto found = std::max_element(first, last, older);
        const auto which = found->second;
        SSL_SESSION& session = *which->session;
        const bool expired = has_expired(session);
        if (!expired && SSL_SESSION_get_protocol_version(&session) < TLS1_3_VERSION) {
            SSL_SESSION_up_ref(&session);
            return session_ptr{&session};
        }
        session_ptr taken = std::move(which->session);
        by_key_.erase(found);
        entries_.erase(which);
        if (!expired) return taken;
    }
}

void session_store::drop(entries::iterator which) noexcept {
    const auto [first, last] = by_key_.equal_range(which->key);
    for (auto each = first; each != last; ++each) {
        if (each->second != which) continue;
        by_key_.erase(each);
        break;
    }
    entries_.erase(which);
}

void session_store::clear() noexcept {
    const std::lock_guard locked{mutex_};
    by_key_.clear();
    entries_.clear();
}

std::size_t session_store::size() const noexcept {
    const std::lock_guard locked{mutex_};
    return entries_.size();
}

} // namespace detail

session_cache::session_cache(std::size_t most)
    : store_{std::make_unique<detail::session_store>(most)} {}

session_cache::~session_cache() = default;

std::size_t session_cache::size() const noexcept {
    return store_->size();
}

void session_cache::clear() noexcept {
    store_->clear();
}

} // namespace simplenet::v0::tls
