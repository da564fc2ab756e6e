#pragma once
// blocking::udp_socket: sends and receives datagrams, blocking in the system call. Layer blocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/socket/basic_udp_socket.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// A UDP socket whose operations wait in the system call: receiving for a datagram, sending for
/// room in the send buffer.
class udp_socket : public basic_udp_socket<udp_socket> {
public:
    /// Turns a nonblocking socket into a blocking one.
    [[nodiscard]] static result<udp_socket> from(nonblocking::udp_socket&& other) noexcept;

private:
    friend detail::socket_access;
    explicit udp_socket(unique_fd socket) noexcept
        : basic_udp_socket{std::move(socket)} {}
};

} // namespace simplenet::v0::blocking

namespace simplenet::v0 {
extern template class basic_udp_socket<blocking::udp_socket>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
