#pragma once
// held_up: a thread of an executor that is busy until the test lets it go on.

#include <latch>
#include <memory>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Occupies one thread of a loop, a pool or a strand while it lives.
class held_up {
public:
    template <class Executor>
    explicit held_up(Executor& where) {
        where.post([both = both_] {
            both->begun.count_down();
            both->released.wait();
        });
        both_->begun.wait();
    }
    held_up(const held_up&) = delete;
    held_up& operator=(const held_up&) = delete;
    ~held_up() { both_->released.count_down(); }

private:
    // Shared, because the last one out destroys it.
    struct latches {
        std::latch begun{1};
        std::latch released{1};
    };
    std::shared_ptr<latches> both_ = std::make_shared<latches>();
};

} // namespace simplenet::v0::testing
