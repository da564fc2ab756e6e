#pragma once
// placed_bytes: content in which each byte tells its position, so that a lost, duplicated or
// reordered byte is found at once, together with its proper place.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Endless content. The byte at an offset depends only on the offset and the seed.
class placed_bytes {
public:
    explicit placed_bytes(std::uint64_t seed) noexcept
        : seed_{seed} {}

    /// Writes the content from `offset` on.
    void fill(std::uint64_t offset, std::span<std::byte> into) const noexcept {
        each_word(offset, into.size(), [&](std::size_t at, const std::byte* bytes, std::size_t n) {
            std::memcpy(into.data() + at, bytes, n);
            return true;
        });
    }
    [[nodiscard]] std::vector<std::byte> piece(std::uint64_t offset, std::size_t size) const {
        std::vector<std::byte> bytes(size);
        fill(offset, bytes);
        return bytes;
    }

    /// The mistake in `bytes`, which should be the content from `offset` on; empty if there is
    /// none.
    [[nodiscard]] std::optional<std::string> mistake(std::uint64_t offset,
                                                     std::span<const std::byte> bytes) const {
        std::size_t wrong = bytes.size();
        each_word(offset, bytes.size(), [&](std::size_t at, const std::byte* right, std::size_t n) {
            if (std::memcmp(bytes.data() + at, right, n) == 0) return true;
            wrong = at;
            while (bytes[wrong] == right[wrong - at])
                ++wrong;
            return false;
        });
        if (wrong == bytes.size()) return std::nullopt;
        return "at offset " + std::to_string(offset + wrong) + " (byte " + std::to_string(wrong) +
               " of " + std::to_string(bytes.size()) + ") stands " +
               origin_of(bytes.subspan(wrong), offset + wrong);
    }

private:
    [[nodiscard]] std::uint64_t word(std::uint64_t number) const noexcept { // splitmix64
        std::uint64_t mixed = seed_ + (number + 1) * 0x9e3779b97f4a7c15U;
        mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebU;
        return mixed ^ mixed >> 31U;
    }

    template <class Use>
    void each_word(std::uint64_t offset, std::size_t size, Use use) const {
        for (std::size_t at = 0; at < size;) {
            const std::uint64_t content = word((offset + at) / 8);
            std::byte bytes[8];
            std::memcpy(bytes, &content, 8);
            const std::size_t skip = (offset + at) % 8;
            const std::size_t count = std::min(8 - skip, size - at);
            if (!use(at, bytes + skip, count)) return;
            at += count;
        }
    }

    /// The place where these bytes belong, searched near the expected one.
    [[nodiscard]] std::string origin_of(std::span<const std::byte> bytes,
                                        std::uint64_t expected) const {
        constexpr std::uint64_t reach = 4 << 20;
        if (bytes.size() < 8) return "something else";
        const std::uint64_t from = expected > reach ? expected - reach : 0;
        const auto around = piece(from, expected + reach - from);
        const auto found =
            std::search(around.begin(), around.end(), bytes.begin(), bytes.begin() + 8);
        if (found == around.end()) return "what belongs nowhere near";
        const std::uint64_t origin = from + static_cast<std::uint64_t>(found - around.begin());
        const std::string to = "what belongs to " + std::to_string(origin) + ": ";
        return origin > expected ? to + std::to_string(origin - expected) + " bytes were lost"
                                 : to + std::to_string(expected - origin) + " bytes came again";
    }

    std::uint64_t seed_;
};

} // namespace simplenet::v0::testing
