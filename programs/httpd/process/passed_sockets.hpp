#pragma once
// The sockets that the program was started with.

#include "httpd/process/listening_sockets.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>

namespace httpd {

/// The sockets that a service manager has passed to this process (sd_listen_fds(3)). They stay
/// open, as they do in the service manager: a reload may want an address again that another one has
/// left.
class passed_sockets {
public:
    /// @par Errors
    /// Those of simplenet::inherited_listeners(); a socket that is none of TCP.
    [[nodiscard]] static simplenet::result<passed_sockets> take_all();

    /// Copies of those that listen at `at`; none: there are none.
    ///
    /// @par Errors
    /// - Those of fcntl(2), F_DUPFD_CLOEXEC, and of tcp_listener::adopt().
    [[nodiscard]] simplenet::result<listening_sockets> copy(const simplenet::endpoint& at) const;

private:
    listening_sockets sockets_;
};

} // namespace httpd
