#pragma once
// httpd::kind_limit: how many messages of one kind may be written. Used by error_log.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace httpd {

/// Counts the messages of each kind in each second. Any thread, without locks.
class kind_limit {
public:
    /// @param per_second  0: no limit.
    explicit kind_limit(unsigned per_second) noexcept
        : per_second_{per_second} {}

    /// Whether one more may be written.
    ///
    /// @param kind  A literal: its address is the kind.
    [[nodiscard]] bool admit(std::string_view kind, std::uint32_t second) noexcept {
        if (per_second_ == 0) return true;
        slot* const of = find(kind);
        if (of == nullptr) return true; // more kinds than the program has
        auto seen = of->counted.load(std::memory_order_relaxed);
        std::uint64_t next = 0;
        do {
            const bool is_same = static_cast<std::uint32_t>(seen >> 32U) == second;
            const std::uint32_t count = is_same ? static_cast<std::uint32_t>(seen) : 0;
            if (count >= per_second_) {
                of->suppressed.fetch_add(1);
                return false;
            }
            next = std::uint64_t{second} << 32U | (count + 1);
        } while (!of->counted.compare_exchange_weak(seen, next, std::memory_order_relaxed));
        return true;
    }

    /// Calls `tell(kind, count)` for each kind with messages that were not admitted since
    /// the last call.
    template <class Function>
    void take_suppressed(Function tell) {
        for (slot& each : slots_) {
            const char* const text = each.text.load(std::memory_order_acquire);
            if (text == nullptr) return;
            if (each.suppressed.load(std::memory_order_relaxed) == 0) continue;
            tell(std::string_view{text}, each.suppressed.exchange(0));
        }
    }

private:
    struct slot {
        std::atomic<const char*> text = nullptr;
        std::atomic<std::uint64_t> counted = 0; // the second, and how many in it
        std::atomic<std::uint64_t> suppressed = 0;
    };

    /// Slots are taken in order and never given back.
    [[nodiscard]] slot* find(std::string_view kind) noexcept {
        for (slot& each : slots_) {
            const char* there = each.text.load(std::memory_order_acquire);
            if (there == nullptr &&
                each.text.compare_exchange_strong(there, kind.data(), std::memory_order_acq_rel))
                return &each;
            if (there == kind.data()) return &each;
        }
        return nullptr;
    }

    const unsigned per_second_;
    std::array<slot, 128> slots_;
};

} // namespace httpd
