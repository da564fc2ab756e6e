#include "http/server/fair_places.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <cstring>

namespace simplenet::v0::http::detail {

using simplenet::detail::wait_end;

client_key key_of(const ip_address& client) noexcept {
    const ip_address plain = client.unmapped();
    client_key key{};
    if (plain.is_v4()) {
        std::memcpy(key.data(), plain.bytes().data(), 4);
        key[1] = 1; // no network of IPv6: that has only the first word
    } else {
        std::memcpy(key.data(), plain.bytes().data(), 8);
    }
    return key;
}

fair_places::~fair_places() {
    SIMPLENET_EXPECTS(shares_.empty(), "a place outlives what it is a place of");
}

bool fair_places::has_room(const client_key& client) const noexcept {
    const auto found = shares_.find(client);
    return may_take(found == shares_.end() ? 0 : found->second.held);
}

bool fair_places::take(const client_key& client, place& into) {
    if (free_ == 0) return false; // allocates nothing for whoever has none
    share& mine = use(client);
    if (!may_take(mine.held)) {
        leave(mine);
        return false;
    }
    give(mine, into);
    return true;
}

// --- shares --------------------------------------------------------------------------------------

fair_places::share& fair_places::use(const client_key& client) {
    share& found = shares_.try_emplace(client).first->second;
    found.of = client;
    ++found.users;
    return found;
}

void fair_places::leave(share& by) noexcept {
    if (--by.users != 0) return;
    const client_key key = by.of;
    shares_.erase(key);
}

/// The place is one of the share's users already.
void fair_places::give(share& to, place& into) noexcept {
    SIMPLENET_DEBUG_EXPECTS(!into, "a request has one place");
    --free_;
    ++to.held;
    into.of_ = this;
    into.by_ = &to;
}

void fair_places::returned(share& by) noexcept {
    ++free_;
    --by.held;
    leave(by);
    serve();
}

// --- waiting -------------------------------------------------------------------------------------

void fair_places::enqueue(share& of, turn& added) noexcept {
    of.turns.push_back(added);
    if (!of.linked()) waiting_.push_back(of);
    serve(); // in case that one has become free since take()
}

void fair_places::withdrew(share& of) noexcept {
    if (of.turns.empty()) of.unlink();
}

/// Restores the promise that nobody waits who could have a place.
void fair_places::serve() noexcept {
    const share* first_refused = nullptr; // since the last one that got a place
    while (free_ != 0 && !waiting_.empty()) {
        share& next = waiting_.front();
        if (&next == first_refused || next.turns.front().is_lost()) return;
        waiting_.pop_front();
        if (!may_take(next.held)) {
            waiting_.push_back(next);
            if (first_refused == nullptr) first_refused = &next;
            continue;
        }
        turn& granted = next.turns.pop_front();
        if (!next.turns.empty()) waiting_.push_back(next);
        first_refused = nullptr;
        ++next.users; // the place
        give(next, *granted.into_);
        granted.end(wait_end::granted);
    }
}

} // namespace simplenet::v0::http::detail
