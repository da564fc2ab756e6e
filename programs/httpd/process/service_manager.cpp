#include "httpd/process/service_manager.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>

namespace httpd {

void notify_manager(std::string_view state) noexcept {
    const char* const path = ::secure_getenv("NOTIFY_SOCKET");
    if (path == nullptr || (*path != '/' && *path != '@')) return;
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::size_t size = std::strlen(path);
    if (size >= sizeof to.sun_path) return;
    std::memcpy(to.sun_path, path, size);
    if (to.sun_path[0] == '@') to.sun_path[0] = '\0'; // an abstract name, unix(7)
    const simplenet::unique_fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (!socket) return;
    static_cast<void>(::sendto(socket.get(), state.data(), state.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
                               static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size)));
}

void notify_reloading() noexcept {
    // For Type=notify-reload (systemd.service(5)): when it began, so that the manager does not take
    // an older READY for the end of this.
    timespec now{};
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &now));
    const long long microseconds = now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
    try {
        notify_manager("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds));
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): then it is not told
    }
}

} // namespace httpd
