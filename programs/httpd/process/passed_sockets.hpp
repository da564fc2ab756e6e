#pragma once
// The sockets that the program was started with.

#include "httpd/process/listening_sockets.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>

namespace httpd {

/// The sockets that a service manager has passed to this process (sd_listen_fds(3)), until they are
/// taken.
class passed_sockets {
public:
    /// @par Errors
    /// Those of simplenet::inherited_listeners(); a socket that is none of TCP.
    [[nodiscard]] static simplenet::result<passed_sockets> take_all();

    [[nodiscard]] bool empty() const noexcept { return sockets_.empty(); }
    /// Whether take() would return any.
    [[nodiscard]] bool has(const simplenet::endpoint& at) const;
    /// Those that listen at `at`; none: there are none.
    [[nodiscard]] listening_sockets take(const simplenet::endpoint& at);

private:
    listening_sockets sockets_;
};

} // namespace httpd
