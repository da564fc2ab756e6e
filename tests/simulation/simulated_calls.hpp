#pragma once
// simulated_calls: while the object exists, the sockets that this thread creates belong to a
// simulated network.

#include "simulation/network.hpp"
#include "sys/seam.hpp"

#include <thread>

namespace simplenet::v0::simulation {

/// Handles the system calls on simulated sockets. Calls of other threads, and calls on other
/// descriptors, go to the kernel.
class simulated_calls final : private detail::sys::interceptor {
public:
    /// @param net  Borrowed.
    explicit simulated_calls(network& net) noexcept
        : net_{net} {}
    simulated_calls(const simulated_calls&) = delete;
    simulated_calls& operator=(const simulated_calls&) = delete;

private:
    long on_call(detail::sys::pending_call& call) noexcept override;
    long answer(detail::sys::pending_call& call);

    network& net_;
    const std::thread::id thread_ = std::this_thread::get_id();
    const detail::sys::intercepting here_{*this};
};

} // namespace simplenet::v0::simulation
