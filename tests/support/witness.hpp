#pragma once
// witness: records its destruction, so that a test can check lifetimes.

#include <cstddef>
#include <utility>
#include <vector>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Move-only. Appends its mark to a log, which outlives it, when it is destroyed without having
/// been moved.
class witness {
public:
    explicit witness(std::vector<int>& log, int mark = 0) noexcept
        : log_{&log}
        , mark_{mark} {}
    witness(witness&& other) noexcept
        : log_{std::exchange(other.log_, nullptr)}
        , mark_{other.mark_} {}
    witness& operator=(witness&&) = delete;
    ~witness() {
        if (log_ != nullptr) log_->push_back(mark_);
    }

private:
    std::vector<int>* log_;
    int mark_;
};

} // namespace simplenet::v0::testing
