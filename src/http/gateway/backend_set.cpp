#include "http/gateway/backend_set.hpp"

#include "http/codec/authority.hpp"

#include <algorithm>
#include <system_error>

namespace simplenet::v0::http {

bool is_backend_address(std::string_view address) noexcept {
    constexpr std::string_view local = "unix:";
    if (address.starts_with(local)) {
        return local_endpoint::parse(address.substr(local.size())).has_value();
    }
    const auto parts = detail::split_authority(address);
    return parts && parts->port && *parts->port != 0;
}

namespace detail {

namespace {

using rep = std::chrono::steady_clock::rep;

constexpr unsigned largest_weight = 1000;

} // namespace

void refuse_option(std::string_view what) {
    throw std::system_error{std::make_error_code(std::errc::invalid_argument), std::string{what}};
}

std::optional<backend_address> parse_backend_address(std::string_view text) {
    if (!is_backend_address(text)) return std::nullopt;
    constexpr std::string_view local = "unix:";
    if (text.starts_with(local)) return *local_endpoint::parse(text.substr(local.size()));
    const auto parts = split_authority(text);
    return tcp_address{std::string{parts->host}, *parts->port};
}

// A line of its own: loops count every request.
struct alignas(64) backend_set::entry {
    std::string name;
    backend_address address;
    unsigned weight = 1;

    mutable std::atomic<unsigned> active = 0;
    // Requests of backend_lease::waits_on_new(), and those of them that wait no more. `marked` is
    // the value of `waits_begun` at `marked_at`: once `waits_ended` reaches it, everybody who
    // waited then has been served.
    mutable std::atomic<std::uint64_t> waits_begun = 0;
    mutable std::atomic<std::uint64_t> waits_ended = 0;
    mutable std::atomic<std::uint64_t> marked = 0;
    mutable std::atomic<rep> marked_at = 0;
    mutable std::atomic<std::uint64_t> answered = 0;
    mutable std::atomic<std::uint64_t> failures = 0;
    // 0           in use
    // otherwise   left out until then (steady_clock); while a trial is under way, until the next
    mutable std::atomic<rep> out_until = 0;
};

backend_set::backend_set(std::span<const backend> backends, std::chrono::nanoseconds retry_after)
    : count_{backends.size()}
    , retry_after_{retry_after} {
    if (backends.empty()) refuse_option("a gateway without a backend");
    if (backends.size() > most_backends) refuse_option("a gateway with too many backends");
    entries_ = std::make_unique<entry[]>(count_); // NOLINT(modernize-avoid-c-arrays)
    for (std::size_t each = 0; each < count_; ++each) {
        entry& to = entries_[each];
        std::optional<backend_address> address = parse_backend_address(backends[each].address);
        if (!address)
            refuse_option("the address of a backend: " + std::string{backends[each].address});
        to.name = backends[each].address;
        to.address = *std::move(address);
        to.weight = backends[each].weight;
        if (to.weight == 0 || to.weight > largest_weight) refuse_option("the weight of " + to.name);
        total_weight_ += to.weight;
    }
}

backend_set::~backend_set() = default;

const backend_set::entry& backend_set::at(std::size_t index) const noexcept {
    return entries_[index];
}

const backend_address& backend_set::address(std::size_t index) const noexcept {
    return at(index).address;
}

std::optional<backend_lease> backend_set::pick(backend_marks& tried, clock::time_point now,
                                               backend_marks full) const noexcept {
    const auto take = [&](std::size_t index, bool is_trial) {
        at(index).active.fetch_add(1, std::memory_order_relaxed);
        tried.add(index);
        return backend_lease{*this, index, is_trial};
    };
    if (out_.load(std::memory_order_relaxed) != 0) {
        // One whose time is over gets one request, before all others.
        const rep time = now.time_since_epoch().count();
        for (std::size_t each = 0; each < count_; ++each) {
            rep until = at(each).out_until.load(std::memory_order_relaxed);
            if (until == 0 || until > time || tried.has(each) || full.has(each)) continue;
            // Of several requests that see this, one sets the time of the next trial.
            const rep next = (now + retry_after_).time_since_epoch().count();
            if (at(each).out_until.compare_exchange_strong(until, next)) return take(each, true);
        }
    }
    const backend_marks unwanted = tried.with(full);
    if (const std::size_t index = least_busy(unwanted); index != count_) return take(index, false);
    if (!full.empty()) {
        // A wait at a backend that works is better than one at a backend that was left out.
        if (const std::size_t index = least_busy(tried); index != count_) return take(index, false);
    }
    std::size_t oldest = count_;
    rep oldest_until = 0;
    for (std::size_t each = 0; each < count_; ++each) {
        const rep until = at(each).out_until.load(std::memory_order_relaxed);
        if (tried.has(each) || (oldest != count_ && until >= oldest_until)) continue;
        oldest = each;
        oldest_until = until;
    }
    if (oldest == count_) return std::nullopt;
    return take(oldest, false);
}

std::size_t backend_set::least_busy(const backend_marks& but) const noexcept {
    std::size_t first = 0;
    if (count_ > 1) {
        std::uint64_t turn = turn_.fetch_add(1, std::memory_order_relaxed) % total_weight_;
        while (turn >= at(first).weight)
            turn -= at(first++).weight;
    }
    std::size_t best = count_;
    std::uint64_t best_active = 0;
    for (std::size_t step = 0; step < count_; ++step) {
        const std::size_t each = (first + step) % count_;
        if (but.has(each) || at(each).out_until.load(std::memory_order_relaxed) != 0) continue;
        const std::uint64_t active = at(each).active.load(std::memory_order_relaxed);
        // active / weight, without a division.
        if (best != count_ && active * at(best).weight >= best_active * at(each).weight) continue;
        best = each;
        best_active = active;
    }
    return best;
}

std::vector<backend_status> backend_set::status(clock::time_point now) const {
    std::vector<backend_status> all;
    all.reserve(count_);
    for (std::size_t each = 0; each < count_; ++each) {
        const entry& of = at(each);
        backend_status& added = all.emplace_back(backend_status{.address = of.name});
        added.weight = of.weight;
        added.active = of.active.load(std::memory_order_relaxed);
        added.answered = of.answered.load(std::memory_order_relaxed);
        added.failures = of.failures.load(std::memory_order_relaxed);
        const rep until = of.out_until.load(std::memory_order_relaxed);
        if (until == 0) continue;
        const clock::time_point end{clock::duration{until}};
        added.left_out = std::max(end - now, clock::duration::zero());
    }
    return all;
}

std::string_view backend_lease::name() const noexcept {
    return set_->at(index_).name;
}

const backend_address& backend_lease::address() const noexcept {
    return set_->at(index_).address;
}

void backend_lease::waits_on_new() noexcept {
    if (!std::exchange(waits_, true)) {
        set_->at(index_).waits_begun.fetch_add(1, std::memory_order_relaxed);
    }
}

void backend_lease::waits_no_more() noexcept {
    if (std::exchange(waits_, false)) {
        set_->at(index_).waits_ended.fetch_add(1, std::memory_order_relaxed);
    }
}

// Backends accept in the order in which others connect, so that those who waited at a moment have
// been served when as many waits have ended as had begun by then. A slow script breaks this
// assumption, and itself looks like a request that waits: the cost is a few needless closes, and in
// read_ahead, when neither memory nor the disk has room, clients that take nothing.
bool backend_lease::do_others_wait(clock::time_point now,
                                   std::chrono::nanoseconds for_so_long) const noexcept {
    const backend_set::entry& of = set_->at(index_);
    const std::uint64_t begun = of.waits_begun.load(std::memory_order_relaxed);
    const std::uint64_t ended = of.waits_ended.load(std::memory_order_relaxed);
    if (begun == ended) return false;
    if (ended >= of.marked.load(std::memory_order_acquire)) {
        // In this order: another loop must not find the new mark with the old time.
        of.marked_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
        of.marked.store(begun, std::memory_order_release);
        return false;
    }
    const clock::time_point since{clock::duration{of.marked_at.load(std::memory_order_relaxed)}};
    return now - since >= for_so_long;
}

bool backend_lease::succeeded() noexcept {
    waits_no_more();
    const backend_set::entry& of = set_->at(index_);
    is_trial_ = false;
    of.answered.fetch_add(1, std::memory_order_relaxed);
    // Nearly always it is in use, and its line need not be written again.
    if (of.out_until.load(std::memory_order_relaxed) == 0) return false;
    if (of.out_until.exchange(0) == 0) return false;
    set_->out_.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

bool backend_lease::failed(clock::time_point now) noexcept {
    waits_no_more();
    const backend_set::entry& of = set_->at(index_);
    is_trial_ = false;
    of.failures.fetch_add(1, std::memory_order_relaxed);
    const rep until = (now + set_->retry_after_).time_since_epoch().count();
    if (of.out_until.exchange(until) != 0) return false;
    set_->out_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void backend_lease::end() noexcept {
    if (std::exchange(has_ended_, true)) return;
    place_.release();
    waits_no_more();
    set_->at(index_).active.fetch_sub(1, std::memory_order_relaxed);
}

void backend_lease::release() noexcept {
    if (set_ == nullptr) return;
    const backend_set::entry& of = set_->at(index_);
    // A trial without an outcome, such as one whose client has gone: the next request makes one.
    if (is_trial_) {
        rep until = of.out_until.load(std::memory_order_relaxed);
        if (until != 0) of.out_until.compare_exchange_strong(until, 1);
    }
    end();
    set_ = nullptr;
}

} // namespace detail
} // namespace simplenet::v0::http
