#pragma once
// event_log: the events of a simulation, as a number to compare and as lines to read.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::simulation {

/// Two runs are the same if their hashes are equal.
class event_log {
public:
    /// @param keep_lines  Also keeps a readable line for each event, which costs memory and time.
    explicit event_log(bool keep_lines = false) noexcept
        : keeps_lines_{keep_lines} {}

    /// @param what  A literal.
    void note(std::chrono::nanoseconds at, std::uint32_t endpoint, std::string_view what,
              std::int64_t count) {
        mix(static_cast<std::uint64_t>(at.count()));
        mix(endpoint);
        for (const char each : what)
            mix(static_cast<unsigned char>(each));
        mix(static_cast<std::uint64_t>(count));
        ++events_;
        if (keeps_lines_) write(at, endpoint, what, count);
    }

    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
    [[nodiscard]] const std::string& lines() const noexcept { return lines_; }

private:
    // FNV-1a by words, with the high bits folded down.
    void mix(std::uint64_t word) noexcept {
        hash_ = (hash_ ^ word) * 0x100000001b3U;
        hash_ ^= hash_ >> 29U;
    }
    void write(std::chrono::nanoseconds at, std::uint32_t endpoint, std::string_view what,
               std::int64_t count);

    std::uint64_t hash_ = 0xcbf29ce484222325U;
    std::uint64_t events_ = 0;
    bool keeps_lines_;
    std::string lines_;
};

} // namespace simplenet::v0::simulation
