#pragma once
// blocking::local_listener: accepts Unix domain connections, blocking until one arrives. Layer
// blocking.

#include <simplenet/blocking/local_stream.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/socket/basic_local_listener.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// A listening Unix domain socket whose `accept()` waits in the system call.
class local_listener : public basic_local_listener<local_listener, local_stream> {
public:
    /// Turns a nonblocking listener into a blocking one.
    [[nodiscard]] static result<local_listener> from(nonblocking::local_listener&& other) noexcept;

private:
    friend detail::socket_access;
    explicit local_listener(unique_fd socket) noexcept
        : basic_local_listener{std::move(socket)} {}
};

} // namespace simplenet::v0::blocking

namespace simplenet::v0 {
extern template class basic_local_listener<blocking::local_listener,
                                           blocking::local_stream>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
