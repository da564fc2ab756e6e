// Exit status 0: this kernel has the io_uring features that the library needs; 1: it has not, and
// why. With its answer, scripts/test.sh turns tests that are skipped for lack of io_uring into
// failures where it exists. The program asks the kernel itself, because the library is under test.

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

int main() {
    io_uring_params params{};
    // From Linux 6.1, like the other features that the backend needs.
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
