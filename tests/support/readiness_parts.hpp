#pragma once
// readiness_parts: a pipe and its bytes, and waits that run beside a test of readiness.

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/readiness.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace simplenet::v0::testing {

inline void put(const unique_fd& into, std::string_view text = "x") {
    EXPECT_EQ(::write(into.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}
inline void take(const unique_fd& from) {
    std::array<char, 65536> scratch;
    EXPECT_GT(::read(from.get(), scratch.data(), scratch.size()), 0);
}
inline void fill(const unique_fd& into) {
    const std::string block(65536, 'x');
    while (::write(into.get(), block.data(), block.size()) > 0) {
    }
}

/// A wait that runs beside the test and records its end.
struct beside {
    std::optional<result<>> outcome;
    join_handle<> task;
};
inline task<> note(std::optional<result<>>& into, int fd, bool writes) {
    if (writes) {
        into = co_await async_wait_writable(fd);
    } else {
        into = co_await async_wait_readable(fd);
    }
}
inline void wait_beside(beside& waiting, int fd, bool writes = false) {
    waiting.task = spawn(note(waiting.outcome, fd, writes));
}

} // namespace simplenet::v0::testing
