#pragma once
// blocking::local_datagram: sends and receives Unix domain datagrams, blocking in the system call.
// Layer blocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/socket/basic_local_datagram.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// A Unix domain datagram socket whose operations wait in the system call: receiving for a
/// datagram, sending for room in the queue of the receiver.
class local_datagram : public basic_local_datagram<local_datagram> {
public:
    /// Turns a nonblocking socket into a blocking one.
    [[nodiscard]] static result<local_datagram> from(nonblocking::local_datagram&& other) noexcept;

private:
    friend detail::socket_access;
    explicit local_datagram(unique_fd socket) noexcept
        : basic_local_datagram{std::move(socket)} {}
};

} // namespace simplenet::v0::blocking

namespace simplenet::v0 {
extern template class basic_local_datagram<blocking::local_datagram>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
