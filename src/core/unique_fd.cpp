#include <simplenet/core/unique_fd.hpp>

#include <unistd.h>

namespace simplenet::detail {

void close_descriptor(int fd) noexcept {
    ::close(fd);
}

} // namespace simplenet::detail
