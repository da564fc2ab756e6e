#pragma once
// The buffers of a message of sendmsg(2) or recvmsg(2).

#include <algorithm>
#include <cstddef>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::simulation {

[[nodiscard]] inline std::size_t size_of(std::span<const iovec> pieces) noexcept {
    std::size_t size = 0;
    for (const iovec& each : pieces)
        size += each.iov_len;
    return size;
}

/// Calls `with` for each buffer of the message, up to `most` bytes in total.
template <class With>
void for_each_piece(std::span<const iovec> pieces, std::size_t most, With with) {
    for (const iovec& each : pieces) {
        if (most == 0) return;
        const std::size_t count = std::min(each.iov_len, most);
        with(static_cast<std::byte*>(each.iov_base), count);
        most -= count;
    }
}

[[nodiscard]] inline std::span<const iovec> pieces_of(const msghdr& message) noexcept {
    return {message.msg_iov, message.msg_iovlen};
}

template <class Value>
[[nodiscard]] const Value* control_value(const msghdr& message, int level, int type) noexcept {
    auto& changeable = const_cast<msghdr&>(message); // CMSG_NXTHDR needs it
    for (cmsghdr* each = CMSG_FIRSTHDR(&changeable); each != nullptr;
         each = CMSG_NXTHDR(&changeable, each)) {
        if (each->cmsg_level == level && each->cmsg_type == type) {
            return reinterpret_cast<const Value*>(CMSG_DATA(each));
        }
    }
    return nullptr;
}

} // namespace simplenet::v0::simulation
