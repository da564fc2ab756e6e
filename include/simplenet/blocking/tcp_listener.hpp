#pragma once
// blocking::tcp_listener: accepts TCP connections, blocking until one arrives. Layer blocking.

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/socket/basic_tcp_listener.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// A listening TCP socket whose `accept()` waits in the system call.
class tcp_listener : public basic_tcp_listener<tcp_listener, tcp_stream> {
public:
    /// Turns a nonblocking listener into a blocking one.
    [[nodiscard]] static result<tcp_listener> from(nonblocking::tcp_listener&& other) noexcept;

private:
    friend detail::socket_access;
    explicit tcp_listener(unique_fd socket) noexcept
        : basic_tcp_listener{std::move(socket)} {}
};

} // namespace simplenet::v0::blocking

namespace simplenet::v0 {
extern template class basic_tcp_listener<blocking::tcp_listener,
                                         blocking::tcp_stream>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
