#pragma once
// The processors of a thread's affinity mask.

#include <cstdlib>
#include <string>
#include <string_view>

#include <pthread.h>
#include <sched.h>

namespace bench {

/// From now on the calling thread runs only on the nth processor of its affinity mask.
inline void pin_to(unsigned long nth) {
    cpu_set_t all;
    CPU_ZERO(&all);
    ::sched_getaffinity(0, sizeof all, &all);
    nth %= static_cast<unsigned long>(CPU_COUNT(&all));
    for (int number = 0; number < CPU_SETSIZE; ++number) {
        if (!CPU_ISSET(number, &all) || nth-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(number, &one);
        ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
        return;
    }
}

/// For `--cpu N`: the same, also for the threads that it starts; -1: nothing.
inline void choose_processor(std::string_view nth) {
    if (nth != "-1") pin_to(std::strtoul(std::string{nth}.c_str(), nullptr, 10));
}

} // namespace bench
