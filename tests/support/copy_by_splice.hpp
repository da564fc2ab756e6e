#pragma once
// copy_by_splice: async_copy() in the state in which it moves large amounts.

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/copy.hpp>

#include <cstddef>

namespace simplenet::v0::testing {

/// Starts with splice(2), which async_copy() uses only after a full block, and on io_uring only
/// when the kernel does not receive ahead.
inline task<transfer_result> copy_by_splice(tcp_stream& from, tcp_stream& to) {
    std::size_t moved = 0;
    result<> spliced;
    if (auto bytes = co_await from.readable(); !bytes) spliced = fail(bytes);
    if (spliced) spliced = co_await detail::copy_spliced(from, to, moved);
    if (!spliced) co_return std::unexpected{transfer_error{spliced.error(), moved}};
    transfer_result rest = co_await async_copy(from, to);
    if (rest) co_return moved + *rest;
    rest.error().transferred += moved;
    co_return rest;
}

} // namespace simplenet::v0::testing
