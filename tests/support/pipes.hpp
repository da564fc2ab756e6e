#pragma once
// A pipe: a descriptor that is not a socket.

#include "support/raw_peer.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <array>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0::testing {

struct pipe_pair {
    unique_fd out;
    unique_fd in;
};
/// Neither end blocks.
inline pipe_pair make_pipe() {
    std::array<int, 2> fds{};
    checked(::pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK));
    return {unique_fd{fds[0]}, unique_fd{fds[1]}};
}

} // namespace simplenet::v0::testing
