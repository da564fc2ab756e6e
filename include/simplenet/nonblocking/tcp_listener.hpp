#pragma once
// nonblocking::tcp_listener: accepts waiting TCP connections. Layer nonblocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/nonblocking/tcp_stream.hpp>
#include <simplenet/socket/basic_tcp_listener.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {

/// A listening TCP socket whose `accept()` never waits: if no connection is waiting, it fails with
/// `std::errc::operation_would_block`.
class tcp_listener : public basic_tcp_listener<tcp_listener, tcp_stream> {
public:
    /// Turns a blocking listener into a nonblocking one.
    [[nodiscard]] static result<tcp_listener> from(blocking::tcp_listener&& other) noexcept;

private:
    friend detail::socket_access;
    explicit tcp_listener(unique_fd socket) noexcept
        : basic_tcp_listener{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

namespace simplenet::v0 {
extern template class basic_tcp_listener<nonblocking::tcp_listener,
                                         nonblocking::tcp_stream>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
