// Groups of loops, pools, strands and calls elsewhere, as the contract spells them.

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace {

using namespace simplenet;
using namespace std::chrono_literals;

template <class T>
constexpr bool is_options = std::is_aggregate_v<T> && std::is_trivially_destructible_v<T> &&
                            std::is_trivially_copyable_v<T>;

static_assert(is_options<event_loop_group_options> && is_options<thread_pool_options> &&
              is_options<loop_options>);
static_assert(event_loop_group_options{}.loops == 0 && !event_loop_group_options{}.pin);
static_assert(event_loop_group_options{}.name == "simplenet");
static_assert(thread_pool_options{}.threads == 0 && thread_pool_options{}.queue_limit == 1024);
static_assert(thread_pool_options{}.name == "pool");
static_assert(std::same_as<decltype(event_loop_group_options::loops), unsigned>);
static_assert(std::same_as<decltype(event_loop_group_options::name), std::string_view>);
static_assert(std::same_as<decltype(thread_pool_options::threads), unsigned>);
static_assert(std::same_as<decltype(thread_pool_options::queue_limit), std::size_t>);

static_assert(std::movable<event_loop_group> && !std::copyable<event_loop_group>);
static_assert(!std::convertible_to<thread_pool_options, thread_pool>);
static_assert(!std::convertible_to<thread_pool&, strand>);
static_assert(std::constructible_from<strand, thread_pool&>);
static_assert(std::default_initializable<thread_pool>);

TEST(contract_threads, groups_have_their_members) {
    static_assert(std::same_as<decltype(event_loop_group::create()), result<event_loop_group>>);
    auto group = or_throw(event_loop_group::create(
        {.loops = 2, .pin = false, .loop = {.backend = backend::epoll}, .name = "contract"}));
    const std::size_t size = group.size();
    EXPECT_EQ(size, 2U);
    static_assert(std::same_as<decltype(group[0]), event_loop&>);
    static_assert(std::same_as<decltype(group.next()), event_loop&>);
    EXPECT_NE(&group.next(), &group.next());

    event_loop_group moved = std::move(group);
    EXPECT_EQ(moved[1].spawn_remote([]() -> task<int> { co_return 7; }).get(), 7);
    const event_loop_group& looked_at = moved;
    static_assert(std::same_as<decltype(looked_at.metrics()), loop_metrics>);
    static_assert(std::same_as<decltype(looked_at.metrics(0)), loop_metrics>);
    EXPECT_GE(looked_at.metrics().turns, looked_at.metrics(1).turns);
    moved.stop();
    moved.join();
}

int add(int left, int right) {
    return left + right;
}

TEST(contract_threads, pools_and_strands_take_callables) {
    std::atomic<int> calls = 0;
    std::string order;
    {
        thread_pool pool{thread_pool_options{.threads = 2, .queue_limit = 8, .name = "contract"}};
        static_assert(std::same_as<decltype(pool.post([] {})), void>);
        static_assert(std::same_as<decltype(pool.try_post([] {})), bool>);
        strand in_order{pool};
        static_assert(std::same_as<decltype(in_order.post([] {})), void>);
        static_assert(std::same_as<decltype(in_order.try_post([] {})), bool>);

        pool.post([&calls, only_moves = std::make_unique<int>(1)] { calls += *only_moves; });
        while (!pool.try_post([&] { ++calls; }))
            std::this_thread::yield();
        in_order.post([&] { order += 'a'; });
        while (!in_order.try_post([&] { order += 'b'; }))
            std::this_thread::yield();
        simplenet::run([](strand& last) -> task<> { co_await run_on(last, [] {}); }(in_order));
        while (calls != 2)
            std::this_thread::yield();
    }
    EXPECT_EQ(order, "ab");
    thread_pool with_defaults;
    thread_pool braced{{.threads = 1}};
}

TEST(contract_threads, calls_run_elsewhere) {
    auto group = or_throw(event_loop_group::create({.loops = 1}));
    thread_pool pool{{.threads = 1}};
    strand in_order{pool};
    simplenet::run([](event_loop& loop, thread_pool& threads, strand& ordered) -> task<> {
        EXPECT_EQ(co_await run_on(loop, add, 1, 2), 3);
        EXPECT_EQ(co_await run_on(threads, &add, 1, 2), 3);
        EXPECT_EQ(co_await run_on(ordered, add, 1, 2), 3);
        EXPECT_EQ(co_await run_blocking(add, 1, 2), 3);
        EXPECT_EQ(co_await run_blocking([](std::string text) { return text.size(); }, "four"), 4U);
        const auto only_moves = co_await run_on(
            threads, [](std::unique_ptr<int> number) { return number; }, std::make_unique<int>(5));
        EXPECT_EQ(*only_moves, 5);
        EXPECT_EQ(co_await run_on(loop, []() -> task<int> { co_return 6; }), 6);
        auto limited = run_blocking([] { return 7; });
        const result<int> in_time = co_await with_timeout(std::move(limited), 1h);
        EXPECT_EQ(in_time, 7);
    }(group[0], pool, in_order));
}

} // namespace
