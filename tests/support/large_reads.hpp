#pragma once
// Large reads, for which io_uring stops receiving ahead.

#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/stream/transfer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

inline constexpr std::size_t large = 64 * 1024;

/// Makes large reads until the backend must have noticed, and waits once.
template <class Stream>
task<> read_much(Stream& ours, raw_peer& theirs) {
    std::string buffer(large, '\0');
    for (std::uint32_t round = 0; round < 4; ++round) {
        const std::string sent = noise(large, round);
        auto reading = async_read_exact(ours, buffer);
        theirs.send(sent);
        EXPECT_TRUE(co_await std::move(reading));
        EXPECT_TRUE(buffer == sent) << "round " << round;
    }
}

} // namespace simplenet::v0::testing
