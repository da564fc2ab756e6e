#pragma once
// unknown_peers: a kernel that does not tell the address of a client that has reset. Only with
// SIMPLENET_SEAMS.

#include "sys/seam.hpp"

#include <cerrno>

#include <sys/socket.h>

namespace simplenet::v0::testing {

/// As if each client had reset, in a sandbox without SO_PEERNAME.
class unknown_peers final : public detail::sys::interceptor {
    long on_call(detail::sys::pending_call& call) noexcept override {
        using enum detail::sys::call;
        if (call.which() == getpeername) return -ENOTCONN;
        const bool is_name = call.which() == getsockopt && call.argument<int>(2) == SO_PEERNAME;
        return is_name ? -ENOPROTOOPT : call.make();
    }
};

} // namespace simplenet::v0::testing
