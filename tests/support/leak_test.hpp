#pragma once
// leak_test: a backend_test that must leave nothing behind.

#include "support/backend_test.hpp"
#include "support/resources.hpp"

namespace simplenet::v0::testing {

/// Fails a test that leaves a coroutine frame or a descriptor.
class leak_test : public backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp(); // the first loop may open what a process opens once
        destroy_loop();
        before_ = resources::now();
        remake_loop();
    }
    void TearDown() override {
        destroy_loop();
        if (!IsSkipped()) expect_nothing_left(before_);
    }
    /// Runs a few turns, then destroys the loop.
    void run_a_little_and_destroy() {
        for (int turn = 0; turn < 5; ++turn)
            loop().poll();
        destroy_loop();
    }

private:
    resources before_{};
};

} // namespace simplenet::v0::testing
