// An echo allocates nothing after its warm-up. The test replaces the allocation functions to count,
// so it is a program of its own.

#include <simplenet/simplenet.hpp>

#include "support/backend_test.hpp"
#include "support/counted_allocations.hpp"
#include "support/pipes.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <unistd.h>

namespace simplenet::v0::testing {
namespace {

constexpr int warm_up = 1'000;
constexpr int round_trips = 100'000;

using namespace std::chrono_literals;

task<> echo_by_read_some(tcp_stream peer) {
    std::array<std::byte, 4096> buffer;
    while (const auto count = co_await peer.read_some(buffer)) {
        if (!co_await async_write_all(peer, const_buffer{buffer.data(), *count})) co_return;
    }
}

task<> echo_by_receive(tcp_stream peer) {
    while (const auto lease = co_await peer.receive()) {
        if (!co_await async_write_all(peer, *lease)) co_return;
    }
}

task<> echo_with_limits(tcp_stream peer) {
    std::array<std::byte, 4096> buffer;
    while (const auto count = co_await with_timeout(peer.read_some(buffer), 1h)) {
        const const_buffer answer{buffer.data(), *count};
        if (!co_await with_timeout(async_write_all(peer, answer), 1h)) co_return;
    }
}

/// The number of allocations in 100 000 round trips of 64 bytes with a server that runs `echo`,
/// after a warm-up.
task<std::size_t> allocations_of(task<> (*echo)(tcp_stream)) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto client = or_throw(co_await async_connect(or_throw(listener.local_endpoint())));
    auto server = spawn(echo(or_throw(co_await listener.accept())));

    std::array<std::byte, 64> message{};
    std::size_t before = 0;
    for (int round = 0; round < warm_up + round_trips; ++round) {
        if (round == warm_up) before = allocations;
        or_throw(co_await async_write_all(client, message));
        or_throw(co_await async_read_exact(client, message));
    }
    const std::size_t during = allocations - before;

    client.close();
    co_await server;
    co_return during;
}

class allocation_test : public backend_test {
protected:
    void expect_none(task<> (*echo)(tcp_stream)) {
        if (!detail::recycles_frames) GTEST_SKIP() << "frames are not recycled under ASan";
        run([&]() -> task<> { EXPECT_EQ(co_await allocations_of(echo), 0u); }, 10 * test_limit);
    }
};

TEST_P(allocation_test, the_counter_counts) {
    const std::size_t before = allocations;
    ::operator delete(::operator new(1));
    EXPECT_EQ(allocations - before, 1u);
}

TEST_P(allocation_test, echo_by_read_some_allocates_nothing) {
    expect_none(echo_by_read_some);
}

TEST_P(allocation_test, echo_by_receive_allocates_nothing) {
    expect_none(echo_by_receive);
}

TEST_P(allocation_test, echo_with_limits_allocates_nothing) {
    expect_none(echo_with_limits);
}

TEST_P(allocation_test, waiting_for_a_foreign_descriptor_allocates_nothing) {
    const auto [out, in] = testing::make_pipe();
    run([&]() -> task<> {
        std::size_t before = 0;
        char byte = 'x';
        for (int round = 0; round < warm_up + 10'000; ++round) {
            if (round == warm_up) before = allocations;
            EXPECT_EQ(::write(in.get(), &byte, 1), 1);
            or_throw(co_await with_timeout(async_wait_readable(out.get()), 1h));
            or_throw(co_await async_wait_writable(in.get()));
            EXPECT_EQ(::read(out.get(), &byte, 1), 1);
        }
        EXPECT_EQ(allocations - before, 0u);
    });
}

// The perturbed kernel allocates.
INSTANTIATE_TEST_SUITE_P(backends, allocation_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
