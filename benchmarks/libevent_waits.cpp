// libevent's side of loop_waits.cpp: a timer of 100 us, N times. Uses
// EVENT_BASE_FLAG_PRECISE_TIMER; by default libevent's clock and waits have millisecond resolution.
//
//   --what idle_wait   --count N

#include "arguments.hpp"

#include <cstdint>
#include <cstdio>
#include <ctime>

#include <event2/event.h>

namespace {

std::int64_t processor_time() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct waiting {
    event* timer = nullptr;
    unsigned long left = 0;
};

constexpr timeval pause{.tv_sec = 0, .tv_usec = 100};

void expired(evutil_socket_t, short, void* of) {
    auto* const which = static_cast<waiting*>(of);
    if (--which->left != 0) evtimer_add(which->timer, &pause);
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const unsigned long count = given.number("count", 1000);
    const bool known = given.text("what", "idle_wait") == "idle_wait";
    given.done();
    if (!known || count == 0) return 2;

    event_config* const how = event_config_new();
    event_config_set_flag(how, EVENT_BASE_FLAG_PRECISE_TIMER);
    event_base* const base = event_base_new_with_config(how);
    waiting found{.timer = nullptr, .left = count};
    found.timer = evtimer_new(base, expired, &found);
    evtimer_add(found.timer, &pause);
    const std::int64_t before = processor_time();
    if (event_base_dispatch(base) < 0) return 1; // ends when nothing is left to wait for
    const std::int64_t spent = processor_time() - before;
    std::printf("cpu_ns=%lld\n", static_cast<long long>(spent) / static_cast<long long>(count));
}
