// Exit status 0: this kernel offers io_uring as the library needs it; 1: it does not, and why.
// scripts/test.sh asks, so that tests skipped for want of io_uring are failures where it is there.
// It asks the kernel itself: asking the library would believe what is to be tested.

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

int main() {
    io_uring_params params{};
    // Came with Linux 6.1, as did the rest of what the backend cannot do without.
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    const auto fd = static_cast<int>(::syscall(SYS_io_uring_setup, 8U, &params));
    if (fd < 0) {
        std::printf("io_uring is not available: %s\n", std::strerror(errno));
        return 1;
    }
    ::close(fd);
    std::puts("io_uring is available");
    return 0;
}
