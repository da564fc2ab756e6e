#pragma once
// connection_pool_core: the places of a connection_pool, and who waits for one. Layer stream.

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/pool_options.hpp>
#include <simplenet/sync/detail/waiter.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class connection_pool_core;
class pool_slot;
class pool_turn;
struct pool_lru_tag;

/// What a pool knows of a key. Exists while `users` is not 0.
struct pool_key {
    std::string text;
    std::size_t places = 0;            // attached slots
    std::size_t users = 0;             // attached slots, and calls of borrow() in progress
    intrusive_list<pool_slot> idle;    // the one used last is the first
    intrusive_list<pool_turn> waiting; // in the order of their arrival
    // Its place in connection_pool_core::candidates_ while it has none, so that entering allocates
    // nothing.
    std::map<std::uint64_t, pool_key*>::node_type spare;
    std::uint64_t candidate = 0; // its number there; 0: it is not there
};

/// A place for a connection, which counts as soon as it is attached to a key. The derived class has
/// the connection.
///
/// Owned by its borrower, or by the core while it is idle. Invariant: idle slots are attached, in
/// the idle list of their key and in the list of all idle slots.
class pool_slot : public list_hook<>, public list_hook<pool_lru_tag> {
public:
    pool_slot(const pool_slot&) = delete;
    pool_slot& operator=(const pool_slot&) = delete;
    /// Gives the place to whoever waits for it. The derived class has closed the connection.
    virtual ~pool_slot();

protected:
    pool_slot() noexcept = default;

private:
    friend connection_pool_core;
    connection_pool_core* core_ = nullptr; // null: not attached
    pool_key* key_ = nullptr;
    timer_node::clock::time_point idle_since_;
};

/// Closes the connections that have been idle for too long.
class pool_timer final : public timer_node {
public:
    explicit pool_timer(connection_pool_core& of) noexcept
        : core_{&of} {}

    void arm(timer_wheel& in, clock::time_point deadline) noexcept {
        wheel_ = &in;
        in.insert(*this, deadline);
    }
    /// Also outside of the loop's turns, and when the loop is gone.
    void stop() noexcept {
        if (armed()) wheel_->cancel(*this);
    }

private:
    void expired() noexcept override;

    connection_pool_core* core_;
    timer_wheel* wheel_ = nullptr; // the latest one; gone if the timer is not armed
};

/// The counts and the queues of a pool, whatever its connections are.
///
/// Counted by hand, because it outlives the pool: as long as a connection is lent, or a borrow() in
/// progress. A shared_ptr would count with atomics. Loop thread only.
///
/// Invariant, after each change: nobody waits who could have a place. A key whose first waiter
/// waits only for the total is in `candidates_`.
class connection_pool_core {
public:
    explicit connection_pool_core(pool_options options);
    connection_pool_core(const connection_pool_core&) = delete;
    connection_pool_core& operator=(const connection_pool_core&) = delete;

    void add_reference() noexcept { ++references_; }
    void drop_reference() noexcept {
        if (--references_ == 0) delete this;
    }

    /// The pool is gone: closes what is idle, and ends the waits.
    void close() noexcept;
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }

    /// The key with this text; the caller becomes a user.
    [[nodiscard]] pool_key& use_key(std::string text);
    void leave_key(pool_key& key) noexcept;

    /// The idle connection to `key` that was used last, or null.
    [[nodiscard]] pool_slot* take_idle(pool_key& key) noexcept;
    /// Attaches `slot` if the limits allow it and nobody waits for this key. May close an idle
    /// connection to another key.
    [[nodiscard]] bool reserve(pool_key& key, pool_slot& slot) noexcept;
    /// Keeps a lent connection as idle, or closes it if the pool or the loop is gone.
    void keep(std::unique_ptr<pool_slot> slot) noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return total_; }
    [[nodiscard]] std::size_t idle_count() const noexcept { return idle_count_; }
    [[nodiscard]] const pool_options& options() const noexcept { return options_; }

protected:
    virtual ~connection_pool_core() = default;

private:
    friend pool_slot;
    friend pool_timer;
    friend pool_turn;

    void attach(pool_key& key, pool_slot& slot) noexcept;
    void detach(pool_slot& slot) noexcept;
    void take(pool_slot& idle) noexcept;
    void evict(pool_slot& idle) noexcept;
    [[nodiscard]] bool has_room(const pool_key& key) noexcept;
    void close_overdue() noexcept;
    void arm() noexcept;

    void enqueue(pool_key& key, pool_turn& turn) noexcept;
    void withdrew(pool_key& key) noexcept;
    void update(pool_key& key) noexcept;
    void serve() noexcept;

    pool_options options_;
    std::size_t references_ = 1; // the pool itself
    bool closed_ = false;
    std::size_t total_ = 0; // attached slots
    std::size_t idle_count_ = 0;
    std::uint64_t arrivals_ = 0; // of waiters
    std::unordered_map<std::string, pool_key> keys_;
    // Keys whose first waiter would be served if the total allowed it, by its number of arrival.
    std::map<std::uint64_t, pool_key*> candidates_;
    intrusive_list<pool_slot, pool_lru_tag> idle_; // the longest idle is the first
    pool_timer timer_{*this};
};

/// A reference to a core.
template <class Core>
class pool_reference {
public:
    /// Adopts the first reference.
    explicit pool_reference(Core* core) noexcept
        : core_{core} {}
    pool_reference(const pool_reference& other) noexcept
        : core_{other.core_} {
        if (core_ != nullptr) core_->add_reference();
    }
    pool_reference(pool_reference&& other) noexcept
        : core_{std::exchange(other.core_, nullptr)} {}
    pool_reference& operator=(pool_reference other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    ~pool_reference() {
        if (core_ != nullptr) core_->drop_reference();
    }

    [[nodiscard]] Core* operator->() const noexcept { return core_; }
    [[nodiscard]] Core& operator*() const noexcept { return *core_; }
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

private:
    Core* core_; // null only after a move
};

/// A call of borrow() uses a key.
class pool_key_use {
public:
    pool_key_use(connection_pool_core& core, std::string text)
        : core_{&core}
        , key_{&core.use_key(std::move(text))} {}
    pool_key_use(const pool_key_use&) = delete;
    pool_key_use& operator=(const pool_key_use&) = delete;
    ~pool_key_use() { core_->leave_key(*key_); }

    [[nodiscard]] pool_key& operator*() const noexcept { return *key_; }
    [[nodiscard]] pool_key* operator->() const noexcept { return key_; }

private:
    connection_pool_core* core_;
    pool_key* key_;
};

/// Waits for a place. Then `own` is attached, or `idle` is an idle connection.
class [[nodiscard]] pool_turn final : public waiter, public awaited_from_outside<pool_turn> {
public:
    pool_turn(connection_pool_core& core, pool_key& key, pool_slot& own,
              std::unique_ptr<pool_slot>& idle) noexcept
        : core_{&core}
        , key_{&key}
        , own_{&own}
        , idle_{&idle} {}
    pool_turn(pool_turn&& other) noexcept
        : waiter{}
        , awaited_from_outside{}
        , core_{other.core_}
        , key_{other.key_}
        , own_{other.own_}
        , idle_{other.idle_} {}
    pool_turn& operator=(pool_turn&&) = delete;
    ~pool_turn() { withdraw(); }

    void describe(std::string& text) override { text += "a connection_pool"; }
    using awaited_from_outside<pool_turn>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        if (refused(caller, within)) return true;
        suspend(caller, within);
        core_->enqueue(*key_, *this);
        return true;
    }
    result<> await_resume() const noexcept { return outcome(); }

    void on_stop(stop_reason reason) noexcept override {
        if (withdraw()) end(end_by(reason));
    }

private:
    friend connection_pool_core;
    bool withdraw() noexcept {
        if (!linked()) return false;
        unlink();
        core_->withdrew(*key_);
        return true;
    }

    connection_pool_core* core_; // borrowed
    pool_key* key_;
    pool_slot* own_;
    std::unique_ptr<pool_slot>* idle_;
    std::uint64_t arrival_ = 0;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
