#pragma once
// fair_places: places for work of which only so much is done at once, shared by addresses. Layer
// http, private.

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/sync/detail/waiter.hpp>

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace simplenet::v0::http::detail {

/// What counts as one client: an IPv4 address, or the network of 64 bits of an IPv6 address, which
/// one household has whole. All clients without an address are one.
using client_key = std::array<std::uint64_t, 2>;
[[nodiscard]] client_key key_of(const ip_address& client) noexcept;

/// A number of places, which requests take and leave.
///
/// Promises:
/// * A client gets one only while it has fewer than are left. So one alone has at most half of
///   them, the next one half of the rest, and it takes eight clients to occupy 128.
/// * Those who wait take turns by client, and the requests of one in the order of arrival. Nobody
///   waits who could have a place. A client that has its share, and waits for more, is
///   passed by those behind it.
///
/// Outlives its places and turns. Loop thread only.
///
/// Cost: a search in a map of the clients that have or want places; the first one of a client
/// allocates.
class fair_places {
public:
    class place;
    class turn;

    /// @param number  At least 1.
    explicit fair_places(std::size_t number) noexcept
        : free_{number} {}
    fair_places(const fair_places&) = delete;
    fair_places& operator=(const fair_places&) = delete;
    ~fair_places();

    /// Whether take() would succeed.
    [[nodiscard]] bool has_room(const client_key& client) const noexcept;
    /// @param into  Empty; unchanged if there is none for this client.
    [[nodiscard]] bool take(const client_key& client, place& into);
    [[nodiscard]] bool has_waiters() const noexcept { return !waiting_.empty(); }

private:
    struct share : simplenet::detail::list_hook<> {
        client_key of{};
        std::size_t held = 0;  // places
        std::size_t users = 0; // places and turns
        simplenet::detail::intrusive_list<turn> turns;
    };

    [[nodiscard]] share& use(const client_key& client);
    void leave(share& by) noexcept;
    [[nodiscard]] bool may_take(std::size_t held) const noexcept { return held < free_; }
    void give(share& to, place& into) noexcept;
    void returned(share& by) noexcept;
    void enqueue(share& of, turn& added) noexcept;
    void withdrew(share& of) noexcept;
    void serve() noexcept;

    std::size_t free_;
    std::map<client_key, share> shares_; // of those that have or want places
    simplenet::detail::intrusive_list<share> waiting_;
};

/// Owns a place, or nothing. Movable.
class [[nodiscard]] fair_places::place {
public:
    place() noexcept = default;
    place(place&& other) noexcept
        : of_{std::exchange(other.of_, nullptr)}
        , by_{other.by_} {}
    place& operator=(place&& other) noexcept {
        if (this != &other) {
            release();
            of_ = std::exchange(other.of_, nullptr);
            by_ = other.by_;
        }
        return *this;
    }
    ~place() { release(); }

    explicit operator bool() const noexcept { return of_ != nullptr; }
    /// Whether giving it up could help somebody who waits: another request of the same client, or
    /// anybody if no place is free. A client that only waits for more than its share has no claim
    /// on the places of others.
    [[nodiscard]] bool is_wanted() const noexcept {
        if (of_ == nullptr || !of_->has_waiters()) return false;
        return of_->free_ == 0 || !by_->turns.empty();
    }
    /// Leaves it to others. Does nothing if it is empty.
    void release() noexcept {
        if (of_ != nullptr) std::exchange(of_, nullptr)->returned(*by_);
    }

private:
    friend fair_places;

    fair_places* of_ = nullptr;
    share* by_ = nullptr;
};

/// Waits for a place. A turn that was granted one succeeds, even if a stop comes before it resumes.
class [[nodiscard]] fair_places::turn final : public simplenet::detail::waiter,
                                              public simplenet::detail::awaited_from_outside<turn> {
public:
    /// @param into  Empty.
    turn(fair_places& at, const client_key& client, place& into)
        : at_{&at}
        , of_{&at.use(client)}
        , into_{&into} {}
    turn(turn&& other) noexcept
        : waiter{}
        , awaited_from_outside{}
        , at_{other.at_}
        , of_{std::exchange(other.of_, nullptr)}
        , into_{other.into_} {}
    turn& operator=(turn&&) = delete;
    ~turn() {
        withdraw();
        if (of_ != nullptr) at_->leave(*of_);
    }

    void describe(std::string& text) override { text += "a place for a client"; }
    using awaited_from_outside<turn>::await_suspend;
    template <simplenet::detail::own_promise Promise>
    bool await_suspend(
        std::coroutine_handle<Promise> caller,
        simplenet::detail::await_site at = simplenet::detail::await_site::current()) noexcept {
        simplenet::detail::scope& within = simplenet::detail::scope_of(caller, at);
        if (refused(caller, within)) return true;
        suspend(caller, within);
        at_->enqueue(*of_, *this);
        return true;
    }
    result<> await_resume() const noexcept { return outcome(); }

    void on_stop(simplenet::detail::stop_reason reason) noexcept override {
        if (withdraw()) end(simplenet::detail::end_by(reason));
    }

private:
    friend fair_places;
    bool withdraw() noexcept {
        if (!linked()) return false;
        unlink();
        at_->withdrew(*of_);
        return true;
    }

    fair_places* at_; // borrowed
    share* of_;       // null after a move
    place* into_;
};

} // namespace simplenet::v0::http::detail
