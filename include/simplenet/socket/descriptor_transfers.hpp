#pragma once
// received_descriptors: open descriptors that came over a Unix domain stream. Layer socket.

#include <simplenet/core/abi.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// How many descriptors the kernel accepts with one send (unix(7), SCM_MAX_FD).
inline constexpr std::size_t most_descriptors = 253;

/// Bytes that were received, and the descriptors that came with them.
struct received_descriptors {
    received_descriptors() noexcept = default;
    // A constructor, as GCC 12 destroys the members of aggregates twice in co_await expressions.
    received_descriptors(std::size_t bytes, std::vector<unique_fd> came) noexcept
        : size{bytes}
        , descriptors{std::move(came)} {}

    std::size_t size = 0;               // bytes in the buffer, at least 1
    std::vector<unique_fd> descriptors; // in the order of the sender; those left here are closed
};

} // namespace simplenet::v0

#pragma GCC visibility pop
