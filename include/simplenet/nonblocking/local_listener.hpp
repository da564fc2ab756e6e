#pragma once
// nonblocking::local_listener: accepts waiting Unix domain connections. Layer nonblocking.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/fwd.hpp>
#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/socket/basic_local_listener.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::nonblocking {

/// A listening Unix domain socket whose `accept()` never waits: if no connection is waiting, it
/// fails with `std::errc::operation_would_block`.
class local_listener : public basic_local_listener<local_listener, local_stream> {
public:
    /// Turns a blocking listener into a nonblocking one.
    [[nodiscard]] static result<local_listener> from(blocking::local_listener&& other) noexcept;

private:
    friend detail::socket_access;
    explicit local_listener(unique_fd socket) noexcept
        : basic_local_listener{std::move(socket)} {}
};

} // namespace simplenet::v0::nonblocking

namespace simplenet::v0 {
extern template class basic_local_listener<nonblocking::local_listener,
                                           nonblocking::local_stream>; // in the library
} // namespace simplenet::v0

#pragma GCC visibility pop
