#pragma once
// nonblocking::udp_socket: sends and receives datagrams without waiting. Layer nonblocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/socket/basic_udp_socket.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {

/// A UDP socket whose operations never wait: one that would have to fails with
/// `std::errc::operation_would_block` and has done nothing.
class udp_socket : public basic_udp_socket<udp_socket> {
public:
    /// Turns a blocking socket into a nonblocking one.
    [[nodiscard]] static result<udp_socket> from(blocking::udp_socket&& other) noexcept;

private:
    friend detail::socket_access;
    explicit udp_socket(unique_fd socket) noexcept
        : basic_udp_socket{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

namespace simplenet::v0 {
extern template class basic_udp_socket<nonblocking::udp_socket>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
