#pragma once
// random_stop: awaits an operation, and stops it at a random moment, in one of all the ways to stop
// something. The result is the one that this way promises: nothing that moved may be missing.

#include "coroutines.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

/// The ways to stop an operation.
enum class manner : std::uint8_t {
    not_at_all,
    timeout,
    deadline,        // may already have passed
    token_on_loop,   // requested some turns later
    token_on_thread, // requested by another thread
    token_before,    // requested before: nothing may happen
    group,           // the group is stopped
    failing_sibling, // another child of the group fails
    failing_gather,
    handle,         // the join_handle is stopped
    race,           // against a sleep: a late success is among the values
    token_in_limit, // two scopes; either may stop first
    limit_in_token,
    shielded, // in a stopped scope: it must happen nevertheless
    count_of_them,
};

inline std::string_view name_of(manner how) {
    constexpr std::array<std::string_view, static_cast<std::size_t>(manner::count_of_them)> names{
        "not at all",
        "by a time-out",
        "by a deadline",
        "by a token on the loop",
        "by a token on another thread",
        "before, by a token",
        "by its group",
        "by a sibling that fails",
        "by an arm of gather that fails",
        "by its handle",
        "in a race",
        "by a token in a time-out",
        "by a time-out in a token",
        "around a shield"};
    return names[static_cast<std::size_t>(how)];
}

/// Requests stops from a thread of its own, a moment later.
class stopping_thread {
public:
    stopping_thread()
        : thread_{[this](const std::stop_token& end) { work(end); }} {}

    void request_soon(std::stop_source source, unsigned spins) {
        {
            const std::scoped_lock guard{mutex_};
            waiting_.emplace_back(std::move(source), spins);
        }
        changed_.notify_one();
    }

private:
    void work(const std::stop_token& end) {
        std::vector<std::pair<std::stop_source, unsigned>> now;
        while (!end.stop_requested()) {
            {
                std::unique_lock guard{mutex_};
                changed_.wait(guard, end, [this] { return !waiting_.empty(); });
                std::swap(now, waiting_);
            }
            for (auto& [source, spins] : now) {
                for (volatile unsigned left = spins; left != 0;)
                    left = left - 1;
                source.request_stop();
            }
            now.clear();
        }
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<std::pair<std::stop_source, unsigned>> waiting_;
    std::jthread thread_; // last: it uses the others
};

/// Random decisions; the same for the same seed.
class decisions {
public:
    explicit decisions(std::uint64_t seed)
        : engine_{seed} {}

    /// 0 to `most`.
    std::size_t up_to(std::size_t most) { return engine_() % (most + 1); }
    bool percent(std::size_t chance) { return up_to(99) < chance; }
    template <class T>
    T one_of(std::initializer_list<T> choices) {
        return choices.begin()[up_to(choices.size() - 1)];
    }
    /// Mostly small, rarely `most`.
    std::size_t size(std::size_t most) {
        const std::size_t limit = one_of<std::size_t>({16, 16, 256, 4096, most});
        return 1 + up_to(std::min(limit, most) - 1);
    }
    std::chrono::nanoseconds moment() {
        return std::chrono::microseconds{one_of<std::size_t>({0, 1, 20, 200, up_to(1500)})};
    }
    manner any_manner() {
        return static_cast<manner>(1 + up_to(static_cast<std::size_t>(manner::count_of_them) - 2));
    }

private:
    std::mt19937_64 engine_;
};

template <class Awaitable>
using outcome_of = std::remove_cvref_t<detail::await_result<Awaitable>>;

/// Whether an operation with this `outcome` failed because of a stop: with one of these two errors.
template <class Outcome>
bool was_stopped(const Outcome& outcome) {
    if (outcome) return false;
    const std::error_code why = outcome.error();
    return why == std::errc::operation_canceled || why == errc::deadline_exceeded;
}

namespace random_stop_parts {

template <class Awaitable>
task<> keep(Awaitable work, std::optional<outcome_of<Awaitable>>& into) {
    into.emplace(co_await std::move(work));
}
template <class Awaitable>
task<result<>> keep_quietly(Awaitable work, std::optional<outcome_of<Awaitable>>& into) {
    into.emplace(co_await std::move(work));
    co_return result<>{};
}
inline task<> request_after(std::stop_source source, int count) {
    co_await turns(count);
    source.request_stop();
}
inline task<result<>> fail_after(int count) {
    co_await turns(count);
    co_return fail(std::errc::io_error);
}

template <class Awaitable>
task<outcome_of<Awaitable>> by_token(Awaitable work, int count) {
    std::stop_source source;
    task_group stoppers;
    stoppers.spawn(request_after(source, count));
    auto outcome = co_await with_stop(source.get_token(), std::move(work));
    static_cast<void>(co_await stoppers.join());
    co_return outcome;
}
template <class Awaitable>
task<outcome_of<Awaitable>> by_group(Awaitable work, int count) {
    std::optional<outcome_of<Awaitable>> outcome;
    task_group group;
    group.spawn(keep(std::move(work), outcome));
    co_await turns(count);
    group.request_stop();
    static_cast<void>(co_await group.join());
    co_return *std::move(outcome);
}
template <class Awaitable>
task<outcome_of<Awaitable>> by_sibling(Awaitable work, int count) {
    std::optional<outcome_of<Awaitable>> outcome;
    auto body = [&](task_group& group) -> task<> {
        group.spawn(keep(std::move(work), outcome));
        group.spawn(fail_after(count));
        co_return;
    };
    static_cast<void>(co_await with_group(body));
    co_return *std::move(outcome);
}
template <class Awaitable>
task<outcome_of<Awaitable>> by_gather(Awaitable work, int count) {
    std::optional<outcome_of<Awaitable>> outcome;
    static_cast<void>(co_await gather(keep_quietly(std::move(work), outcome), fail_after(count)));
    co_return *std::move(outcome);
}
template <class Awaitable>
task<outcome_of<Awaitable>> by_handle(Awaitable work, int count) {
    std::optional<outcome_of<Awaitable>> outcome;
    auto handle = spawn(keep(std::move(work), outcome));
    co_await turns(count);
    handle.request_stop();
    co_await handle;
    co_return *std::move(outcome);
}
template <class Awaitable>
task<outcome_of<Awaitable>> by_race(Awaitable work, std::chrono::nanoseconds limit) {
    // A failed loser has no value, so the count of a transfer would be lost.
    if constexpr (std::same_as<typename outcome_of<Awaitable>::error_type, std::error_code>) {
        auto ended = co_await when_any(std::move(work), async_sleep(limit));
        auto& kept = std::get<0>(ended.values);
        if (kept) co_return *std::move(kept);
        co_return fail(std::errc::operation_canceled);
    } else {
        std::optional<outcome_of<Awaitable>> outcome;
        static_cast<void>(co_await when_any(keep(std::move(work), outcome), async_sleep(limit)));
        co_return *std::move(outcome);
    }
}

} // namespace random_stop_parts

/// Awaits `work`, which returns an expected, and stops it as `how` says.
template <class Awaitable>
task<outcome_of<Awaitable>> stopped(Awaitable work, manner how, decisions& random,
                                    stopping_thread& elsewhere) {
    using namespace random_stop_parts;
    const int count = static_cast<int>(random.up_to(random.one_of<std::size_t>({1, 4, 30})));
    const std::chrono::nanoseconds limit = random.moment();
    switch (how) {
    case manner::not_at_all:
    case manner::count_of_them:
        co_return co_await std::move(work);
    case manner::timeout:
        co_return co_await with_timeout(std::move(work), limit);
    case manner::deadline: {
        const auto when = std::chrono::steady_clock::now() + limit - std::chrono::microseconds{300};
        co_return co_await with_deadline(std::move(work), when);
    }
    case manner::token_on_loop:
        co_return co_await by_token(std::move(work), count);
    case manner::token_on_thread: {
        std::stop_source source;
        elsewhere.request_soon(source, static_cast<unsigned>(random.up_to(20000)));
        co_return co_await with_stop(source.get_token(), std::move(work));
    }
    case manner::token_before: {
        std::stop_source source;
        source.request_stop();
        auto outcome = co_await with_stop(source.get_token(), std::move(work));
        if constexpr (std::derived_from<Awaitable, detail::operation>) { // a task may use a shield
            EXPECT_TRUE(was_stopped(outcome)) << "an operation did something in a stopped scope";
        }
        co_return outcome;
    }
    case manner::group:
        co_return co_await by_group(std::move(work), count);
    case manner::failing_sibling:
        co_return co_await by_sibling(std::move(work), count);
    case manner::failing_gather:
        co_return co_await by_gather(std::move(work), count);
    case manner::handle:
        co_return co_await by_handle(std::move(work), count);
    case manner::race:
        co_return co_await by_race(std::move(work), limit);
    case manner::token_in_limit:
        co_return co_await with_timeout(by_token(std::move(work), count), limit);
    case manner::limit_in_token:
        co_return co_await by_token(with_timeout(std::move(work), limit), count);
    case manner::shielded: {
        std::stop_source source;
        source.request_stop();
        co_return co_await with_stop(source.get_token(), shield(std::move(work)));
    }
    }
    co_return co_await std::move(work);
}

/// The decisions of one loop, and its stops.
struct random_stops {
    random_stops(std::uint64_t seed, stopping_thread& stopping)
        : random{seed}
        , elsewhere{stopping} {}

    /// Awaits `work`, and tries to stop it that often: three tries in ten are in time.
    template <class Awaitable>
    auto perhaps_stopped(Awaitable work, std::size_t percent = 95) {
        manner how = random.percent(percent) ? random.any_manner() : manner::not_at_all;
        if (how == manner::shielded && !shields) how = manner::timeout;
        return stopped(std::move(work), how, random, elsewhere);
    }

    decisions random;
    stopping_thread& elsewhere;
    bool shields = true; // false: everything that waits can be stopped from outside
};

} // namespace simplenet::v0::testing
