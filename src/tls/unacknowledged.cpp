#include <simplenet/tls/detail/connection.hpp>

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace simplenet::v0::tls::detail {

std::size_t unacknowledged(int socket) noexcept {
    int bytes = 0;
    return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

} // namespace simplenet::v0::tls::detail
