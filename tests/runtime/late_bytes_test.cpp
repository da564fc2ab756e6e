// Bytes beat a limit that passes in the turn in which they come, on however many streams they do.

#include <simplenet/runtime/deadline.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/runtime/tcp_listener.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::inline v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::turns;

// The kernel gives io_uring 20 completions at a time, and receives no more than it has buffers for.
class late_bytes_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        clock_.set_automatic(false);
    }
    void TearDown() override {
        connections_.clear();
        backend_test::TearDown(); // before the clock
    }

    void connect(int count, std::size_t pool = loop_options{}.receive_pool) {
        remake_loop({.receive_pool = pool, .clock = &clock_});
        for (int each = 0; each < count; ++each)
            connections_.push_back(connect_raw());
    }
    task<> send_to_all_as_limits_pass() {
        co_await turns(10); // everybody waits
        for (auto& each : connections_)
            each.theirs.send("bytes");
        clock_.advance(20ms);
    }

    static task<> read(tcp_stream& from) {
        std::array<std::byte, 8> buffer{};
        EXPECT_EQ((co_await with_timeout(from.read_some(buffer), 10ms)).value_or(0), 5U);
    }
    static task<> receive(tcp_stream& from) {
        EXPECT_TRUE(co_await with_timeout(from.receive(), 10ms));
    }
    static task<> receive_without_limit(tcp_stream& from) { EXPECT_TRUE(co_await from.receive()); }

    template <class Read>
    void read_everywhere(Read read) {
        run([&]() -> task<> {
            std::vector<join_handle<void>> readers;
            for (auto& each : connections_)
                readers.push_back(spawn(read(each.ours)));
            co_await send_to_all_as_limits_pass();
            for (auto& each : readers)
                co_await each;
        });
    }

    testing::manual_clock clock_;
    std::vector<testing::raw_connection<tcp_stream>> connections_;
};

TEST_P(late_bytes_test, reads_of_hundreds_have_theirs) {
    connect(200);
    read_everywhere(read);
}

TEST_P(late_bytes_test, receives_of_hundreds_have_theirs) {
    connect(200);
    read_everywhere(receive);
}

TEST_P(late_bytes_test, reads_have_theirs_from_a_pool_of_one_buffer) {
    connect(40, 1);
    read_everywhere(read);
}

TEST_P(late_bytes_test, one_limit_among_many_without_passes_after_its_bytes) {
    connect(101);
    run([&]() -> task<> {
        std::vector<join_handle<void>> readers;
        for (auto& each : connections_) {
            const bool last = &each == &connections_.back();
            readers.push_back(spawn(last ? receive(each.ours) : receive_without_limit(each.ours)));
        }
        co_await send_to_all_as_limits_pass();
        for (auto& each : readers)
            co_await each;
    });
}

TEST_P(late_bytes_test, a_connection_beats_the_limit_of_an_accept_beside_them) {
    connect(100);
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    std::optional<blocking::tcp_stream> client;
    run([&]() -> task<> {
        std::vector<join_handle<void>> readers;
        for (auto& each : connections_)
            readers.push_back(spawn(receive_without_limit(each.ours)));
        auto accepted =
            spawn([&]() -> task<> { EXPECT_TRUE(co_await with_timeout(listener.accept(), 10ms)); });
        co_await send_to_all_as_limits_pass();
        client = or_throw(blocking::tcp_stream::connect(or_throw(listener.local_endpoint())));
        co_await accepted;
        for (auto& each : readers)
            co_await each;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, late_bytes_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::inline v0
