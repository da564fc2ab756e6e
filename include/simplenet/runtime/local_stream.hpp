#pragma once
// local_stream: a Unix domain connection whose operations are awaited. Layer runtime.

#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/runtime/stream_operations.hpp>
#include <simplenet/runtime/tcp_stream.hpp>
#include <simplenet/socket/socket_names.hpp>
#include <simplenet/socket/socket_options.hpp>

#include <utility>
#include <vector>

namespace simplenet {
namespace detail {

using local_stream_operations =
    with_stream_operations<with_local_names<with_socket_options<io_object>>>;

} // namespace detail

inline namespace runtime {

/// A Unix domain connection: a handle like tcp_stream, with the same operations. Loop thread only.
class local_stream : public detail::local_stream_operations {
public:
    /// What release() gives.
    struct released {
        nonblocking::local_stream socket;
        std::vector<std::byte> unread; // received already, and not read
    };

    /// Takes a connected socket; throws std::bad_alloc.
    explicit local_stream(nonblocking::local_stream socket)
        : with_stream_operations{std::move(socket).release()} {
        // Where descriptors are attached a read ends (unix(7)), and the peer decides about that.
        expect_short_reads();
    }

    /// Two streams connected to each other.
    ///
    /// @par Errors
    /// - `std::errc::too_many_files_open` and what else socketpair(2) reports.
    [[nodiscard]] static result<std::pair<local_stream, local_stream>> pair();

    /// As tcp_stream::release().
    [[nodiscard]] task<result<released>> release() &&;

    /// The process that called connect() or, seen from there, listen(); for a pair, the one that
    /// made it.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: closed before.
    [[nodiscard]] result<process_credentials> peer_credentials() const noexcept {
        return detail::names::unix_peer_credentials(native_handle());
    }
};

} // namespace runtime
} // namespace simplenet
