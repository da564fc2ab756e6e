#include "sys/uring_calls.hpp"

namespace simplenet::v0::detail::sys {

int uring_enable(int ring) noexcept {
    constexpr auto enable = [](int fd) noexcept {
        constexpr unsigned enable_rings = 12; // IORING_REGISTER_ENABLE_RINGS
        return ::syscall(__NR_io_uring_register, fd, enable_rings, nullptr, 0);
    };
    return made<call::uring_enable>(enable, ring) < 0 ? -errno : 0;
}

int uring_register(int ring, unsigned what, void* argument, unsigned count) noexcept {
    constexpr auto call_register = [](int fd, unsigned opcode, void* with, unsigned size) noexcept {
        return ::syscall(__NR_io_uring_register, fd, opcode, with, size);
    };
    const long outcome = made<call::uring_register>(call_register, ring, what, argument, count);
    return outcome < 0 ? -errno : static_cast<int>(outcome);
}

} // namespace simplenet::v0::detail::sys
