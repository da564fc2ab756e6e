#pragma once
// Counts the segments with data that a TCP socket has sent.

#include "support/raw_peer.hpp"

#include <chrono>
#include <cstdint>

#include <linux/tcp.h>

namespace simplenet::v0::testing {

/// tcpi_data_segs_out of TCP_INFO (tcp(7)). A segment that segmentation offload splits counts once
/// for each part.
inline std::uint32_t data_segments_sent(int fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    checked(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
    return info.tcpi_data_segs_out;
}

/// Whether the kernel may have sent an incomplete segment because nothing followed in 200 ms. Tests
/// that count segments begin again then.
class segment_clock {
public:
    [[nodiscard]] bool was_slow() const {
        return std::chrono::steady_clock::now() - begun_ > std::chrono::milliseconds{150};
    }

private:
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

} // namespace simplenet::v0::testing
