#pragma once
// write_options: how a stream writes. Layer core.

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// How write_some() and its like write.
struct write_options {
    /// More bytes follow at once: TCP keeps an incomplete segment until they come, so that a head
    /// and a body leave together (MSG_MORE, send(2)), even with TCP_NODELAY. If nothing follows,
    /// the kernel sends the segment after 200 ms. No effect on Unix domain sockets and in memory.
    bool more = false;
};

} // namespace simplenet::v0

#pragma GCC visibility pop
