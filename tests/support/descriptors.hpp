#pragma once
// Queries about descriptors, and waits for them without sleeping.

#include "sys/calls.hpp"

#include <cstddef>
#include <simplenet/core/buffer.hpp>

#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

namespace simplenet::v0::testing {

inline bool is_close_on_exec(int fd) {
    return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}
inline bool is_nonblocking(int fd) {
    return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}
inline bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) >= 0;
}
/// The number of open descriptors of this process.
inline std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all))) - 1; // the directory
}

/// What the kernel holds for a stream socket: shows whether a loop missed something or the kernel
/// has nothing to report.
inline std::string kernel_state(int fd) {
    const int now =
        detail::sys::poll(fd, POLLIN | POLLOUT, std::chrono::steady_clock::time_point{});
    return "fd " + std::to_string(fd) + ": " + std::to_string(detail::sys::unread_bytes(fd)) +
           " bytes unread" + ((now & POLLIN) != 0 ? " (readable), " : ", ") +
           std::to_string(detail::sys::unsent_bytes(fd)) + " not acknowledged" +
           ((now & POLLOUT) != 0 ? " (writable)\n" : "\n");
}

/// Waits for `events`, but not forever: a test that would hang fails here.
inline void await(int fd, short events) {
    const int happened =
        detail::sys::poll(fd, events, std::chrono::steady_clock::now() + std::chrono::seconds{20});
    EXPECT_NE(happened, 0) << "the expected event did not happen";
}

/// The result of `attempt()`, repeated whenever `fd` has `events` until it does not have to wait.
template <class Attempt>
auto eventually(int fd, short events, Attempt attempt) {
    for (int tries = 0;; ++tries) {
        auto outcome = attempt();
        if (outcome || outcome.error() != std::errc::operation_would_block || tries == 1000) {
            return outcome;
        }
        await(fd, events);
    }
}

/// Reads exactly `size` bytes, or less if the stream ends or fails before.
template <class Stream>
std::string read_text(Stream& stream, std::size_t size) {
    std::string text(size, '\0');
    std::size_t have = 0;
    while (have < size) {
        auto count = eventually(stream.native_handle(), POLLIN, [&] {
            return stream.read_some(mutable_buffer{text.data() + have, size - have});
        });
        if (!count) break;
        have += *count;
    }
    text.resize(have);
    return text;
}

/// The error that ends the stream, after all bytes that can still be read.
template <class Stream>
std::error_code read_to_the_end(Stream& stream) {
    std::array<char, 4096> scratch;
    for (;;) {
        auto count =
            eventually(stream.native_handle(), POLLIN, [&] { return stream.read_some(scratch); });
        if (!count) return count.error();
    }
}

} // namespace simplenet::v0::testing
