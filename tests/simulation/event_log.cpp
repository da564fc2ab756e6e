#include "simulation/event_log.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace simplenet::v0::simulation {

void event_log::write(std::chrono::nanoseconds at, std::uint32_t endpoint, std::string_view what,
                      std::int64_t count) {
    std::array<char, 96> line{};
    const int size =
        std::snprintf(line.data(), line.size(), "%14.3f us  %4" PRIu32 "  %-12.*s %" PRId64 "\n",
                      static_cast<double>(at.count()) / 1000, endpoint,
                      static_cast<int>(what.size()), what.data(), count);
    if (size > 0) lines_.append(line.data(), static_cast<std::size_t>(size));
}

} // namespace simplenet::v0::simulation
