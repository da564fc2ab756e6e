#pragma once
// Counts the loop's requests to receive.

#include "sys/seam.hpp"

#include <cstddef>

#include <linux/io_uring.h>

namespace simplenet::v0::testing {

class receive_counter final : public detail::sys::interceptor {
public:
    std::size_t calls = 0;   // of recv(2)
    std::size_t bytes = 0;   // received by those calls
    std::size_t entries = 0; // that receive, on io_uring
    std::size_t cancels = 0; // that cancel others

private:
    long on_call(detail::sys::pending_call& call) noexcept override {
        const long outcome = call.make();
        if (call.which() != detail::sys::call::recv) return outcome;
        ++calls;
        if (outcome > 0) bytes += static_cast<std::size_t>(outcome);
        return outcome;
    }
    int on_entry(detail::sys::pending_entry& entry) noexcept override {
        entries += entry.opcode == IORING_OP_RECV;
        cancels += entry.opcode == IORING_OP_ASYNC_CANCEL;
        return 0;
    }
};

} // namespace simplenet::v0::testing
