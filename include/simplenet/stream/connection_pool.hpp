#pragma once
// connection_pool: connections that are used again by others. Layer stream.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/stream/detail/connection_pool_core.hpp>
#include <simplenet/stream/pool_options.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

template <class Stream>
class pool_slot_of final : public pool_slot {
public:
    std::optional<Stream> stream;
};

template <class Stream>
class pool_state : public connection_pool_core {
public:
    using connection_pool_core::connection_pool_core;
    [[nodiscard]] virtual task<result<Stream>> connect(std::string_view key) = 0;
};

template <class Stream, class Connect>
class pool_state_with final : public pool_state<Stream> {
public:
    pool_state_with(Connect connect, pool_options options)
        : pool_state<Stream>{options}
        , connect_{std::move(connect)} {}
    [[nodiscard]] task<result<Stream>> connect(std::string_view key) override {
        return connect_(key);
    }

private:
    Connect connect_;
};

/// Whether nothing can be read from the idle `stream`: no end, no error, and no bytes, which nobody
/// asked for. An error: a stop prevented the check.
// A read with no time for it polls the kernel once: the end of the stream may have arrived since
// the last turn. What it reads is not missed, because the connection is then closed.
template <class Stream>
task<result<bool>> is_quiet(Stream& stream) {
    const scope& within = co_await own_scope{};
    std::array<std::byte, 1> byte;
    const result<std::size_t> count =
        co_await with_timeout(stream.read_some(byte), std::chrono::nanoseconds{0});
    if (count) co_return false;
    // The caller's limit gives the same error as the one here, but the kernel was not asked.
    if (within.stopped()) co_return fail(error_of(within.reason));
    co_return count.error() == errc::deadline_exceeded;
}

struct pooled_access;

} // namespace detail

inline namespace runtime {

template <class Stream>
class connection_pool;

/// A connection from a connection_pool.
///
/// Owns the connection: destroying it closes the stream, so that a connection in an unknown state,
/// after an error, a stop or an exception, is not used again. give_back() keeps the connection for
/// others. Both make room in the pool. May outlive the pool. Movable, even with operations in
/// flight. Loop thread only.
template <class Stream>
class [[nodiscard]] pooled {
    using slot_type = detail::pool_slot_of<Stream>;

public:
    pooled(pooled&&) noexcept = default;
    pooled& operator=(pooled&& other) noexcept {
        if (this != &other) {
            slot_.reset(); // before the reference to its pool
            pool_ = std::move(other.pool_);
            slot_ = std::move(other.slot_);
            reused_ = other.reused_;
        }
        return *this;
    }
    ~pooled() = default;

    /// The stream.
    ///
    /// @pre Neither moved from nor given back.
    [[nodiscard]] Stream& stream() const noexcept {
        SIMPLENET_EXPECTS(slot_ != nullptr, "a connection was used after it was given back");
        return *slot_->stream;
    }
    [[nodiscard]] Stream& operator*() const noexcept { return stream(); }
    [[nodiscard]] Stream* operator->() const noexcept { return &stream(); }

    /// Whether it has been used before. The peer may have closed such a connection in the moment
    /// in which it was lent, so a request that fails before its first answer may be repeated on
    /// another connection, if it does no harm twice.
    [[nodiscard]] bool is_reused() const noexcept { return reused_; }

    /// Keeps the connection in the pool, where it is idle until somebody borrows it; closes it if
    /// the pool is gone. Whoever waits for it longest gets it at once.
    ///
    /// @pre Neither moved from nor given back. No operation is in flight on the stream, and the
    ///      answers to all requests have been read completely.
    void give_back() {
        SIMPLENET_EXPECTS(slot_ != nullptr, "a connection was given back twice");
        pool_->keep(std::move(slot_));
    }

private:
    friend connection_pool<Stream>;
    friend detail::pooled_access;
    using reference = detail::pool_reference<detail::pool_state<Stream>>;
    pooled(reference pool, std::unique_ptr<slot_type> slot, bool reused) noexcept
        : pool_{std::move(pool)}
        , slot_{std::move(slot)}
        , reused_{reused} {}

    reference pool_; // outlives the slot
    std::unique_ptr<slot_type> slot_;
    bool reused_;
};

} // namespace runtime

namespace detail {

/// For those who keep lent connections idle by themselves.
struct pooled_access {
    template <class Stream>
    static void mark_reused(pooled<Stream>& connection) noexcept {
        connection.reused_ = true;
    }
};

} // namespace detail

inline namespace runtime {

/// Connections that are kept for the next user, by key: to the same origin, address or database.
///
/// borrow() lends an idle connection to the key if there is one that is still alive, makes a new
/// one if the limits allow it, and otherwise waits for its turn. Turns are in the order of arrival:
/// a caller is overtaken only by callers whose keys have room while its own has none. If the total
/// is reached, the connection that has been idle longest is closed for a key that has none.
///
/// Belongs to the loop that uses it first. Destroying the pool closes what is idle and ends waiting
/// borrow() with operation_canceled; connections that are lent stay with their borrowers, and are
/// closed when they come back. It may be destroyed before or after its loop. Not movable. Loop
/// thread only.
///
/// @par Example
/// @snippet clients.cpp pool
template <class Stream>
class connection_pool {
public:
    static_assert(async_reader<Stream>, "the streams of a connection_pool can be read");
    using stream_type = Stream;

    /// @param connect  A callable that takes a `std::string_view`, the key, which is valid until
    ///                 its task ends, and returns `task<result<Stream>>`. Copied or moved. It is
    ///                 destroyed when neither the pool nor a borrow() needs it.
    /// @pre `per_key` and `total` are at least 1.
    template <class Connect>
        requires requires(std::decay_t<Connect>& connect, std::string_view key) {
            { connect(key) } -> std::same_as<task<result<Stream>>>;
        }
    explicit connection_pool(Connect&& connect, pool_options options = {})
        : pool_{new detail::pool_state_with<Stream, std::decay_t<Connect>>{
              std::forward<Connect>(connect), options}} {}
    connection_pool(const connection_pool&) = delete;
    connection_pool& operator=(const connection_pool&) = delete;
    ~connection_pool() { pool_->close(); }

    /// Lends a connection.
    ///
    /// An idle connection is still alive if nothing can be read from it. That is checked by a turn
    /// of the loop; a connection that has ended or has sent something is closed.
    ///
    /// @param key  Copied.
    ///
    /// @par Errors
    /// - `errc::deadline_exceeded`: no turn within `pool_options::wait`.
    /// - Those of `connect`; the next in the queue then has the place.
    /// - `std::errc::operation_canceled`: a stop, or the pool was destroyed.
    /// @par Cancellation
    /// Withdraws from the queue, or stops `connect`. Nothing is lost: an idle connection stays
    /// idle.
    /// @par Cost
    /// A coroutine, and for an idle connection another one and a turn of the loop. A new connection
    /// costs an allocation in addition to those of `connect`.
    [[nodiscard]] task<result<pooled<Stream>>> borrow(std::string_view key) {
        return lend(pool_, std::string{key});
    }

    /// The number of connections: lent, idle, or being made.
    [[nodiscard]] std::size_t size() const noexcept { return pool_->size(); }
    /// The number of idle ones among them.
    [[nodiscard]] std::size_t idle() const noexcept { return pool_->idle_count(); }

private:
    using reference = detail::pool_reference<detail::pool_state<Stream>>;
    using slot_type = detail::pool_slot_of<Stream>;
    using owned_slot = std::unique_ptr<slot_type>;

    [[nodiscard]] static owned_slot own(detail::pool_slot* slot) noexcept {
        return owned_slot{static_cast<slot_type*>(slot)};
    }

    // The order of the locals matters: the pool outlives the key, which outlives the slot.
    static task<result<pooled<Stream>>> lend(reference pool, std::string text) {
        const detail::pool_key_use key{*pool, std::move(text)};
        owned_slot slot = own(pool->take_idle(*key));
        if (!slot) {
            slot = std::make_unique<slot_type>();
            if (!pool->reserve(*key, *slot)) {
                std::unique_ptr<detail::pool_slot> idle;
                detail::pool_turn turn{*pool, *key, *slot, idle};
                const result<> granted =
                    co_await with_timeout(std::move(turn), pool->options().wait);
                if (!granted) co_return fail(granted);
                if (idle) slot = own(idle.release());
            }
        }
        while (slot->stream) {
            const result<bool> quiet = co_await detail::is_quiet(*slot->stream);
            if (pool->is_closed()) co_return fail(std::errc::operation_canceled);
            if (!quiet) {
                pool->keep(std::move(slot));
                co_return fail(quiet);
            }
            if (*quiet) co_return pooled<Stream>{pool, std::move(slot), true};
            slot->stream.reset();
            if (owned_slot other = own(pool->take_idle(*key))) slot = std::move(other);
        }
        result<Stream> made = co_await pool->connect(key->text);
        if (!made) co_return fail(made);
        if (pool->is_closed()) co_return fail(std::errc::operation_canceled);
        slot->stream.emplace(*std::move(made));
        co_return pooled<Stream>{pool, std::move(slot), false};
    }

    reference pool_;
};

template <class Connect>
connection_pool(Connect, pool_options = {}) -> connection_pool<
    typename detail::await_result<std::invoke_result_t<Connect&, std::string_view>>::value_type>;

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
