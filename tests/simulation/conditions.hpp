#pragma once
// conditions: the properties of a simulated network.

#include "simulation/random_source.hpp"

#include <chrono>
#include <cstddef>

namespace simplenet::v0::simulation {

using std::chrono::nanoseconds;

/// The properties of a network. Chances are per thousand.
struct conditions {
    nanoseconds shortest_latency{10'000};
    nanoseconds longest_latency{200'000};
    std::size_t send_room = std::size_t{64} * 1024; // bytes of a stream that are not yet received
    std::size_t receive_room = std::size_t{64} * 1024; // bytes
    nanoseconds slowness{0};  // the longest turn of the loop, so that it wakes late
    unsigned cut = 0;         // a transfer moves fewer bytes than it could
    unsigned not_yet = 0;     // it moves none, and an event announces the next attempt
    unsigned interrupted = 0; // by a signal handler: EINTR
    unsigned groundless = 0;  // an event without a cause
    unsigned postponed = 0;   // an event is delayed until the next wait
    unsigned lost = 0;        // datagrams of UDP
    unsigned doubled = 0;
    unsigned shortage = 0;  // accept4(2) finds no free descriptor, once
    unsigned immediate = 0; // connect(2) completes at once

    /// Networks of all kinds, including quiet ones.
    [[nodiscard]] static conditions drawn_from(random_source& source) noexcept;
};

} // namespace simplenet::v0::simulation
