#include "sys/uring_calls.hpp"

namespace simplenet::detail::sys {

int uring_register(int ring, unsigned what, void* argument, unsigned count) noexcept {
    const long outcome = ::syscall(__NR_io_uring_register, ring, what, argument, count);
    return outcome < 0 ? -errno : static_cast<int>(outcome);
}

} // namespace simplenet::detail::sys
