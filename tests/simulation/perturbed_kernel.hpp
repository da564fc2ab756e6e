#pragma once
// perturbed_kernel: the real kernel, but a seed decides where the kernel has a choice.
//
// Sockets, peers, threads and time are real. Events come in any order and some of them late,
// transfers move less than they could, writes find no room until an event announces some, and
// signals interrupt: everything that a kernel may do and never does on loopback.

#include "simulation/random_source.hpp"
#include "sys/seam.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include <sys/epoll.h>

namespace simplenet::v0::simulation {

class perturbed_kernel final : private detail::sys::interceptor {
public:
    explicit perturbed_kernel(std::uint64_t seed) noexcept
        : random_{seed} {}
    perturbed_kernel(const perturbed_kernel&) = delete;
    perturbed_kernel& operator=(const perturbed_kernel&) = delete;

private:
    /// A descriptor in an epoll.
    struct registration {
        int epoll;
        unsigned interest;
        std::uint64_t data;
        bool is_stream;
    };
    struct late_event {
        int epoll;
        epoll_event event;
    };

    long on_call(detail::sys::pending_call& call) noexcept override;
    long control(detail::sys::pending_call& call);
    long wait(detail::sys::pending_call& call);
    long transfer(detail::sys::pending_call& call, unsigned worth_a_try);
    void forget(int fd);

    [[nodiscard]] const registration* edge_of(int fd) const;
    /// The epolls of `fd` report it once more.
    void tell(int fd, unsigned events);
    [[nodiscard]] bool may_be_late(int epoll, const epoll_event& event) const;

    std::mutex lock_; // not held while the kernel works
    random_source random_;
    std::multimap<int, registration> registered_; // by descriptor
    std::vector<late_event> late_;
    const detail::sys::intercepting here_{*this};
};

} // namespace simplenet::v0::simulation
