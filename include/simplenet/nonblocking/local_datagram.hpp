#pragma once
// nonblocking::local_datagram: sends and receives Unix domain datagrams without waiting. Layer
// nonblocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/socket/basic_local_datagram.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {

/// A Unix domain datagram socket whose operations never wait: one that would have to fails with
/// `std::errc::operation_would_block` and has done nothing.
class local_datagram : public basic_local_datagram<local_datagram> {
public:
    /// Turns a blocking socket into a nonblocking one.
    [[nodiscard]] static result<local_datagram> from(blocking::local_datagram&& other) noexcept;

private:
    friend detail::socket_access;
    explicit local_datagram(unique_fd socket) noexcept
        : basic_local_datagram{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

namespace simplenet::v0 {
extern template class basic_local_datagram<nonblocking::local_datagram>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
