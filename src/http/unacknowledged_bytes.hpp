#pragma once
// unacknowledged_bytes: what a peer has not taken yet. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace simplenet::v0::http::detail {

/// Bytes written to a socket that its peer has not acknowledged (SIOCOUTQ, tcp(7)), or not read
/// (unix(7), with what the kernel needs to store them); 0 if the kernel does not tell.
[[nodiscard]] inline int unacknowledged_bytes(int socket) noexcept {
    int bytes = 0;
    return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

} // namespace simplenet::v0::http::detail
