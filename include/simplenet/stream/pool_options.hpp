#pragma once
// pool_options: the limits of a connection_pool. Layer stream.

#include <chrono>
#include <cstddef>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// The limits of a connection_pool.
struct pool_options {
    /// The most connections to one key: lent, idle, or being made. At least 1.
    std::size_t per_key = 8;
    /// The most connections in all. At least 1.
    std::size_t total = 256;
    /// An idle connection is closed after so long; 0: none is kept.
    std::chrono::nanoseconds idle = std::chrono::seconds{30};
    /// How long borrow() waits for its turn if there are too many connections. Connecting is not
    /// counted.
    std::chrono::nanoseconds wait = std::chrono::seconds{10};
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
