#pragma once
// child_process: a copy of this process that runs a function and returns its result as the status.

#include "raw_peer.hpp"

#include <string>
#include <utility>

#include <csignal>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// Created with fork(2) or `make`, so from a thread without a loop, in a process without other
/// threads. Killed at the end if it still runs.
class child_process {
public:
    template <class Body>
    explicit child_process(Body body, pid_t (*make)() = ::fork)
        : process_{checked(make())} {
        if (process_ == 0) ::_exit(body());
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }

    void send(int signal) const { checked(::kill(process_, signal)); }
    /// Returns when the process has stopped or ended.
    void wait_until_stopped() const {
        int status = 0;
        checked(::waitpid(process_, &status, WUNTRACED));
    }
    /// The way it ended: "status 3", "signal 15".
    [[nodiscard]] std::string end() {
        int status = 0;
        checked(::waitpid(std::exchange(process_, 0), &status, 0));
        return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                   : "status " + std::to_string(WEXITSTATUS(status));
    }

private:
    pid_t process_;
};

} // namespace simplenet::v0::testing
