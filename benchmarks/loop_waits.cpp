// Measures the cost of waiting, in processor time and in system calls: ours, Boost.Asio's, or the
// bare system call's.
//
//   --library ours|asio|bare (idle_wait on epoll)   --backend epoll|io_uring (ours)   --count N
//   --what idle_wait   a lone coroutine sleeps 100 us, N times
//          post_awake  a thread posts N functions to a loop that never sleeps; prints the thread's
//                      number, to tell strace's lines apart
//
// Prints name=value pairs.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>
#include <thread>

#include <sys/epoll.h>
#include <unistd.h>

#if __has_include(<boost/asio.hpp>)
#include <boost/asio.hpp>
#define HAS_ASIO 1
#endif

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

constexpr auto pause = 100us;

std::int64_t processor_time() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct outcome {
    std::int64_t cpu_ns = 0;
    int thread = 0;
};

/// Calls `post` on another thread, and waits until all posts have run.
template <class Post>
std::thread poster(outcome& found, std::atomic<unsigned long>& ran, unsigned long count,
                   const std::atomic<bool>& awake, Post post) {
    return std::thread{[&found, &ran, count, &awake, post] {
        found.thread = static_cast<int>(::gettid());
        while (!awake) {
        }
        for (unsigned long at = 0; at < count; ++at)
            post([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
    }};
}

namespace bare {

outcome idle_wait(unsigned long count) {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    std::array<epoll_event, 256> events; // as many as our backend has room for
    const timespec limit{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds{pause}.count()};
    outcome found;
    const std::int64_t before = processor_time();
    for (unsigned long at = 0; at < count; ++at)
        ::epoll_pwait2(epoll, events.data(), events.size(), &limit, nullptr);
    found.cpu_ns = processor_time() - before;
    ::close(epoll);
    return found;
}

} // namespace bare

namespace ours {

task<> sleeps(unsigned long count, outcome& found) {
    const std::int64_t before = processor_time();
    for (unsigned long at = 0; at < count; ++at)
        or_throw(co_await async_sleep(pause));
    found.cpu_ns = processor_time() - before;
}

outcome idle_wait(backend which, unsigned long count) {
    outcome found;
    run(sleeps(count, found), {.backend = which});
    return found;
}

task<> stay_awake(const std::atomic<unsigned long>& ran, unsigned long count,
                  std::atomic<bool>& awake) {
    awake = true;
    while (ran != count)
        co_await yield();
}

outcome post_awake(backend which, unsigned long count) {
    outcome found;
    std::atomic<unsigned long> ran = 0;
    std::atomic<bool> awake = false;
    auto loop = or_throw(event_loop::create({.backend = which}));
    auto thread = poster(found, ran, count, awake, [&loop](auto function) { loop.post(function); });
    loop.spawn(stay_awake(ran, count, awake)).detach();
    loop.run();
    thread.join();
    return found;
}

} // namespace ours

#ifdef HAS_ASIO
namespace asio = boost::asio;

namespace theirs {

asio::awaitable<void> sleeps(unsigned long count, outcome& found) {
    asio::steady_timer timer{co_await asio::this_coro::executor};
    const std::int64_t before = processor_time();
    for (unsigned long at = 0; at < count; ++at) {
        timer.expires_after(pause);
        co_await timer.async_wait(asio::use_awaitable);
    }
    found.cpu_ns = processor_time() - before;
}

outcome idle_wait(unsigned long count) {
    outcome found;
    asio::io_context context{1};
    asio::co_spawn(context, sleeps(count, found), asio::detached);
    context.run();
    return found;
}

asio::awaitable<void> stay_awake(const std::atomic<unsigned long>& ran, unsigned long count,
                                 std::atomic<bool>& awake) {
    awake = true;
    while (ran != count)
        co_await asio::post(asio::use_awaitable);
}

outcome post_awake(unsigned long count) {
    outcome found;
    std::atomic<unsigned long> ran = 0;
    std::atomic<bool> awake = false;
    asio::io_context context{1};
    auto thread = poster(found, ran, count, awake,
                         [&context](auto function) { asio::post(context, function); });
    asio::co_spawn(context, stay_awake(ran, count, awake), asio::detached);
    context.run();
    thread.join();
    return found;
}

} // namespace theirs
#endif

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const std::string_view library = given.text("library", "ours");
    const std::string_view what = given.text("what", "idle_wait");
    const backend which =
        given.text("backend", "epoll") == "epoll" ? backend::epoll : backend::io_uring;
    const unsigned long count = given.number("count", 1000);
    given.done();
    const bool idle = what == "idle_wait";
    outcome found;
    if (library == "ours") {
        found = idle ? ours::idle_wait(which, count) : ours::post_awake(which, count);
    } else if (library == "bare" && idle) {
        found = bare::idle_wait(count);
#ifdef HAS_ASIO
    } else if (library == "asio") {
        found = idle ? theirs::idle_wait(count) : theirs::post_awake(count);
#endif
    } else {
        std::fprintf(stderr, "no Boost.Asio in this build\n");
        return 2;
    }
    std::printf("cpu_ns=%lld thread=%d\n",
                static_cast<long long>(found.cpu_ns) / static_cast<long long>(count), found.thread);
}
