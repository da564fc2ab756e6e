#include "http/acknowledged_bytes.hpp"

#include "http/unacknowledged_bytes.hpp"

#include <cstddef>

#include <linux/tcp.h> // that of the C library has no tcpi_bytes_acked
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0::http::detail {

std::int64_t acknowledged_bytes(int socket, std::int64_t sent) noexcept {
    ::tcp_info info{};
    ::socklen_t size = sizeof info;
    constexpr std::size_t needed = offsetof(::tcp_info, tcpi_segs_in) + sizeof info.tcpi_segs_in;
    const int asked = ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size);
    // A connected socket has received a segment. 0: the kernel does not fill it in, as gVisor.
    const bool is_told = asked == 0 && size >= needed && info.tcpi_segs_in != 0;
    return is_told ? static_cast<std::int64_t>(info.tcpi_bytes_acked)
                   : sent - unacknowledged_bytes(socket);
}

} // namespace simplenet::v0::http::detail
