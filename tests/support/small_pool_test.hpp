#pragma once
// small_pool_test: a loop with the smallest pool of receive buffers.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/io/received.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

class small_pool_test : public backend_test {
protected:
    /// The smallest pool: two buffers of 16 KiB.
    void SetUp() override {
        backend_test::SetUp();
        if (!IsSkipped()) remake_loop({.receive_pool = 1});
    }

    /// Leases that hold both buffers.
    task<std::vector<received>> hold_everything() {
        std::vector<received> held;
        for (int each = 0; each < 2; ++each) {
            auto [ours, theirs] = connect_raw();
            theirs.send("held");
            auto lease = co_await ours.receive();
            EXPECT_TRUE(lease);
            if (lease) held.push_back(*std::move(lease));
        }
        co_return held;
    }

    /// The text of one receive(); empty after an error.
    template <class Stream>
    static task<std::string> receive_text(Stream& stream) {
        const auto lease = co_await stream.receive();
        co_return std::string{lease ? text_of(*lease) : ""};
    }
};

} // namespace simplenet::v0::testing
