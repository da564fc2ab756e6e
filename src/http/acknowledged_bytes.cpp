#include "http/acknowledged_bytes.hpp"

#include <cstddef>

#include <linux/tcp.h> // that of the C library has no tcpi_bytes_acked
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0::http::detail {

std::optional<std::int64_t> acknowledged_bytes(int socket) noexcept {
    ::tcp_info info{};
    ::socklen_t size = sizeof info;
    constexpr std::size_t needed =
        offsetof(::tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < needed) return {};
    // gVisor leaves the whole structure 0.
    if (info.tcpi_bytes_acked == 0) return {};
    return static_cast<std::int64_t>(info.tcpi_bytes_acked);
}

} // namespace simplenet::v0::http::detail
