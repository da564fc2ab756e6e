#pragma once
// conditions: what a simulated network is like.

#include "simulation/random_source.hpp"

#include <chrono>
#include <cstddef>

namespace simplenet::v0::simulation {

using std::chrono::nanoseconds;

/// What a network is like. Chances are of a thousand.
struct conditions {
    nanoseconds shortest_latency{10'000};
    nanoseconds longest_latency{200'000};
    std::size_t send_room = std::size_t{64} * 1024;    // bytes of a stream that nobody took yet
    std::size_t receive_room = std::size_t{64} * 1024; // bytes
    nanoseconds slowness{0};  // a turn of the loop takes up to so long, and so it wakes up late
    unsigned cut = 0;         // a transfer moves fewer bytes than it could
    unsigned not_yet = 0;     // it moves none, and an event comes when it is worth another try
    unsigned interrupted = 0; // by a signal handler: EINTR
    unsigned groundless = 0;  // an event with nothing behind it
    unsigned postponed = 0;   // an event stays behind until the next wait
    unsigned lost = 0;        // datagrams of UDP
    unsigned doubled = 0;
    unsigned shortage = 0;  // accept4(2) has no descriptor left, for once
    unsigned immediate = 0; // connect(2) is over at once

    /// Of all kinds, quiet ones included.
    [[nodiscard]] static conditions drawn_from(random_source& source) noexcept;
};

} // namespace simplenet::v0::simulation
