// The cost of a large write that waits: system calls and io_uring entries, counted.
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"
#include "sys/seam.hpp"

#include <simplenet/stream/transfer.hpp>

#include <cstddef>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using testing::backend_name;
using testing::connect_raw;

/// Counts the loop's requests to send.
class send_counter final : public detail::sys::interceptor {
public:
    std::size_t calls = 0;   // of send(2)
    std::size_t entries = 0; // that send, on io_uring

private:
    long on_call(detail::sys::pending_call& call) noexcept override {
        calls += call.which() == detail::sys::call::send;
        return call.make();
    }
    int on_entry(detail::sys::pending_entry& entry) noexcept override {
        entries += entry.opcode == IORING_OP_SEND;
        return 0;
    }
};

class large_writes_cost_test : public testing::backend_test {};

// An attempt after each part would find only the little room freed since: ten times as many calls
// on io_uring.
TEST_P(large_writes_cost_test, a_waiting_write_makes_one_call_for_each_part) {
    constexpr std::size_t size = std::size_t{8} << 20U;
    constexpr std::size_t step = std::size_t{64} * 1024;
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        const std::string much(size, 'x');
        auto write = [&]() -> task<> { EXPECT_TRUE(co_await async_write_all(ours, much)); };
        auto writing = loop().spawn(write);
        co_await testing::turns(3); // until the socket is full

        send_counter asked;
        const detail::sys::intercepting now{asked};
        std::string scratch(step, '\0');
        for (std::size_t got = 0; got < size;) {
            const ssize_t count = ::recv(theirs.fd(), scratch.data(), step, MSG_DONTWAIT);
            if (count > 0) got += static_cast<std::size_t>(count);
            co_await testing::turns(2);
        }
        co_await std::move(writing);
        if (GetParam() == backend::io_uring) {
            EXPECT_EQ(asked.calls, 0U);
            EXPECT_GT(asked.entries, 0U);
        }
        EXPECT_LE(asked.calls + asked.entries, size / step);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, large_writes_cost_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
