#include <simplenet/core/unique_fd.hpp>

#include <unistd.h>

namespace simplenet::inline v0::detail {

void close_descriptor(int fd) noexcept {
    ::close(fd);
}

} // namespace simplenet::inline v0::detail
