#include "sys/epoll_calls.hpp"

namespace simplenet::v0::detail::sys {

int epoll_create() noexcept {
    const int outcome = made<call::epoll_create>(::epoll_create1, int{EPOLL_CLOEXEC});
    return outcome >= 0 ? outcome : -errno;
}

int epoll_control(int epoll, int action, int fd, epoll_event* event) noexcept {
    return made<call::epoll_ctl>(::epoll_ctl, epoll, action, fd, event) == 0 ? 0 : -errno;
}

} // namespace simplenet::v0::detail::sys
