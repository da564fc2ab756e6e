#pragma once
// fates: what became of callables that were given away.

#include <atomic>
#include <cstddef>
#include <utility>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Counts the calls, and the destructions without a call, of the callables made from it.
struct fates {
    std::atomic<std::size_t> made = 0;
    std::atomic<std::size_t> called = 0;
    std::atomic<std::size_t> destroyed = 0;

    /// Moves only.
    class callable {
    public:
        explicit callable(fates& of) noexcept
            : of_{&of} {}
        callable(callable&& other) noexcept
            : of_{std::exchange(other.of_, nullptr)} {}
        callable& operator=(callable&&) = delete;
        ~callable() {
            if (of_ != nullptr) ++of_->destroyed;
        }
        void operator()() { ++std::exchange(of_, nullptr)->called; }

    private:
        fates* of_;
    };

    [[nodiscard]] callable one() noexcept {
        ++made;
        return callable{*this};
    }
    [[nodiscard]] std::size_t decided() const noexcept { return called + destroyed; }
};

} // namespace simplenet::v0::testing
