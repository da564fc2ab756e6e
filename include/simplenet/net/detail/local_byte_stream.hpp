#pragma once
// local_byte_stream: a Unix domain connection for bytes alone. Layer net, private.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/async_stream.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/nonblocking/local_stream.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// A Unix domain connection that takes no descriptors.
///
/// If the kernel refuses them (Linux 6.16, SO_PASSRIGHTS), a short read means that nothing is left,
/// as with TCP. With an older kernel it is read like a local_stream, and drops those that arrive.
/// Loop thread only.
class local_byte_stream final : public async_stream {
public:
    /// Takes a connected socket; throws std::bad_alloc.
    ///
    /// @param alone  The bytes come without descriptors.
    local_byte_stream(nonblocking::local_stream socket, bool alone);
};

/// Connects, as async_connect() does.
///
/// @par Errors
/// Those of async_connect().
[[nodiscard]] task<result<local_byte_stream>> connect_for_bytes(local_endpoint to);

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
