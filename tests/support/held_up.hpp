#pragma once
// held_call and held_up: calls on other threads that are busy until the test lets them go on.

#include <latch>
#include <memory>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Holds up a call on another thread.
class held_call {
public:
    /// In the call: it has begun, and waits for release().
    void hold() {
        begun_.count_down();
        released_.wait();
    }
    void wait_for_begin() const { begun_.wait(); }
    void release() { released_.count_down(); }

private:
    std::latch begun_{1};
    std::latch released_{1};
};

/// Occupies one thread of a loop, a pool or a strand while it lives.
class held_up {
public:
    template <class Executor>
    explicit held_up(Executor& where) {
        where.post([call = call_] { call->hold(); });
        call_->wait_for_begin();
    }
    held_up(const held_up&) = delete;
    held_up& operator=(const held_up&) = delete;
    ~held_up() { call_->release(); }

private:
    std::shared_ptr<held_call> call_ =
        std::make_shared<held_call>(); // the last one out destroys it
};

} // namespace simplenet::v0::testing
