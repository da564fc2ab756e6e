#include <simplenet/stream/detail/connection_pool_core.hpp>

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

namespace simplenet::v0::detail {

// --- slots ---------------------------------------------------------------------------------------

pool_slot::~pool_slot() {
    if (core_ == nullptr) return;
    connection_pool_core& core = *core_;
    core.detach(*this);
    core.serve();
}

void connection_pool_core::attach(pool_key& key, pool_slot& slot) noexcept {
    slot.core_ = this;
    slot.key_ = &key;
    ++total_;
    ++key.places;
    ++key.users;
}

void connection_pool_core::detach(pool_slot& slot) noexcept {
    pool_key& key = *std::exchange(slot.key_, nullptr);
    slot.core_ = nullptr;
    --total_;
    --key.places;
    update(key);
    leave_key(key);
}

/// Out of the lists; the caller becomes its owner.
void connection_pool_core::take(pool_slot& idle) noexcept {
    idle.list_hook<>::unlink();
    idle.list_hook<pool_lru_tag>::unlink();
    --idle_count_;
}

void connection_pool_core::evict(pool_slot& idle) noexcept {
    take(idle);
    detach(idle);
    delete &idle;
}

pool_slot* connection_pool_core::take_idle(pool_key& key) noexcept {
    if (key.idle.empty()) return nullptr;
    pool_slot& last_used = key.idle.front();
    take(last_used);
    return &last_used;
}

/// Whether a slot may be attached to `key`; makes room in the total if something is idle.
bool connection_pool_core::has_room(const pool_key& key) noexcept {
    if (key.places >= options_.per_key) return false;
    if (total_ < options_.total) return true;
    if (idle_.empty()) return false;
    evict(idle_.front());
    return true;
}

bool connection_pool_core::reserve(pool_key& key, pool_slot& slot) noexcept {
    if (closed_ || !key.waiting.empty() || !has_room(key)) return false;
    attach(key, slot);
    return true;
}

void connection_pool_core::keep(std::unique_ptr<pool_slot> slot) noexcept {
    auto* const queue = timed_queue::of_this_thread();
    // Without a loop the connection is closed already, and nothing would close it later.
    if (closed_ || queue == nullptr || queue->destroying || options_.idle.count() <= 0) return;
    pool_slot& kept = *slot.release();
    kept.idle_since_ = queue->now();
    kept.key_->idle.push_front(kept);
    idle_.push_back(kept);
    ++idle_count_;
    update(*kept.key_);
    serve();
    arm();
}

// --- time ----------------------------------------------------------------------------------------

void pool_timer::expired() noexcept {
    core_->close_overdue();
}

void connection_pool_core::arm() noexcept {
    auto* const queue = timed_queue::of_this_thread();
    if (timer_.armed() || idle_.empty() || queue == nullptr) return;
    const auto since = idle_.front().idle_since_;
    const auto last = timer_node::clock::time_point::max();
    timer_.arm(queue->timers, options_.idle < last - since ? since + options_.idle : last);
}

void connection_pool_core::close_overdue() noexcept {
    const auto now = timed_queue::present();
    while (!idle_.empty() && now - idle_.front().idle_since_ >= options_.idle)
        evict(idle_.front());
    serve();
    arm();
}

// --- keys and waiters ----------------------------------------------------------------------------

connection_pool_core::connection_pool_core(pool_options options)
    : options_{options} {
    SIMPLENET_EXPECTS(options.per_key != 0 && options.total != 0,
                      "a connection_pool without room for a connection");
}

pool_key& connection_pool_core::use_key(std::string text) {
    const auto [at, is_new] = keys_.try_emplace(std::move(text));
    pool_key& key = at->second;
    if (is_new) {
        try {
            key.text = at->first;
            key.spare = candidates_.extract(candidates_.try_emplace(0, &key).first);
        } catch (...) {
            keys_.erase(at);
            throw;
        }
    }
    ++key.users;
    return key;
}

void connection_pool_core::leave_key(pool_key& key) noexcept {
    if (--key.users == 0) keys_.erase(keys_.find(key.text));
}

void connection_pool_core::enqueue(pool_key& key, pool_turn& turn) noexcept {
    if (closed_) return turn.end(wait_end::canceled);
    turn.arrival_ = ++arrivals_;
    key.waiting.push_back(turn);
    update(key);
}

void connection_pool_core::withdrew(pool_key& key) noexcept {
    update(key);
    serve();
}

/// Restores `candidates_` after a change of the key.
void connection_pool_core::update(pool_key& key) noexcept {
    const bool belongs =
        !key.waiting.empty() && (!key.idle.empty() || key.places < options_.per_key);
    const std::uint64_t number = belongs ? key.waiting.front().arrival_ : 0;
    if (number == key.candidate) return;
    if (key.candidate != 0) key.spare = candidates_.extract(key.candidate);
    key.candidate = number;
    if (number == 0) return;
    key.spare.key() = number;
    candidates_.insert(std::move(key.spare));
}

/// Restores the invariant: the longest waiting first, whatever its key.
// An idle connection to another key is closed for it even if somebody else waits for that key:
// otherwise two busy keys could keep a third one waiting for ever.
void connection_pool_core::serve() noexcept {
    while (!closed_ && !candidates_.empty()) {
        pool_key& key = *candidates_.begin()->second;
        pool_turn& first = key.waiting.front();
        if (first.is_lost()) return;
        if (pool_slot* const idle = take_idle(key)) {
            first.idle_->reset(idle);
        } else {
            if (!has_room(key)) return;
            attach(key, *first.own_);
        }
        key.waiting.pop_front();
        update(key);
        first.end(wait_end::granted);
    }
}

void connection_pool_core::close() noexcept {
    closed_ = true;
    timer_.stop();
    while (!idle_.empty())
        evict(idle_.front());
    for (auto& [text, key] : keys_) {
        while (!key.waiting.empty())
            key.waiting.pop_front().end(wait_end::canceled);
        update(key);
    }
}

} // namespace simplenet::v0::detail
