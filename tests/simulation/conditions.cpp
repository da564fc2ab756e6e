#include "simulation/conditions.hpp"

#include <array>
#include <chrono>

namespace simplenet::v0::simulation {

using namespace std::chrono_literals;

conditions conditions::drawn_from(random_source& source) noexcept {
    conditions like;
    like.shortest_latency = source.between(0us, 100us);
    like.longest_latency =
        like.shortest_latency + source.between(0us, source.chance(300) ? 100'000us : 300us);
    constexpr std::array<std::size_t, 5> rooms{1, 100, 4096, 65536, 262144};
    like.send_room = rooms[source.below(rooms.size())] + source.below(1000);
    like.receive_room = rooms[source.below(rooms.size())] + source.below(1000);
    like.slowness = source.chance(500) ? source.between(1us, 300us) : 0us;
    for (unsigned* each : {&like.cut, &like.not_yet, &like.interrupted, &like.groundless,
                           &like.postponed, &like.shortage}) {
        *each = source.chance(500) ? static_cast<unsigned>(source.below(400)) : 0;
    }
    like.lost = source.chance(300) ? static_cast<unsigned>(source.below(300)) : 0;
    like.doubled = source.chance(300) ? static_cast<unsigned>(source.below(200)) : 0;
    like.immediate = source.chance(300) ? static_cast<unsigned>(source.below(1000)) : 0;
    return like;
}

} // namespace simplenet::v0::simulation
