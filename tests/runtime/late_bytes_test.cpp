// Bytes beat a limit that passes in the turn in which they come, on however many streams they do.

#include <simplenet/runtime/deadline.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/runtime/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace simplenet::inline v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::checked;
using testing::connect_raw;
using testing::turns;

// The kernel gives io_uring 20 completions at a time, and receives no more than it has buffers for.
class late_bytes_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        clock_.set_automatic(false);
        checked(::getrlimit(RLIMIT_NOFILE, &descriptors_));
        rlimit more = descriptors_;
        more.rlim_cur = more.rlim_max;
        checked(::setrlimit(RLIMIT_NOFILE, &more));
    }
    void TearDown() override {
        connections_.clear();
        checked(::setrlimit(RLIMIT_NOFILE, &descriptors_));
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

private:
    rlimit descriptors_{};
};

TEST_P(late_bytes_test, reads_of_hundreds_have_theirs) {
    connect(200);
    read_everywhere(read);
}

TEST_P(late_bytes_test, reads_of_many_hundreds_have_theirs) {
    connect(1500);
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

// A read that has not asked the kernel for anything yet.
TEST_P(late_bytes_test, a_limit_that_passes_before_its_read_waits_passes_after_its_bytes) {
    connect(100);
    auto [ours, theirs] = connect_raw();
    auto [busy, unread] = connect_raw();
    run([&]() -> task<> {
        std::array<std::byte, 10> buffer{};
        const auto first = mutable_buffer{buffer}.first(1);
        theirs.send("a");
        EXPECT_TRUE(co_await ours.read_some(first)); // from here on it receives ahead
        theirs.send("12345");
        std::vector<join_handle<void>> readers;
        for (auto& each : connections_)
            readers.push_back(spawn(receive_without_limit(each.ours)));
        co_await turns(10);
        bool started = false;
        auto limited = spawn([&]() -> task<> {
            for (int count = 0; count < 64; ++count) // as many as go on in one turn
                EXPECT_TRUE(co_await busy.write_some(const_buffer{std::string_view{"x"}}));
            started = true;
            auto read = with_timeout(async_read_exact(ours, mutable_buffer{buffer}), 10ms);
            const auto outcome = co_await std::move(read);
            EXPECT_TRUE(outcome) << error_of(outcome).message();
        });
        co_await testing::until([&] { return started; });
        for (auto& each : connections_)
            each.theirs.send("bytes");
        theirs.send("67890");
        clock_.advance(20ms);
        co_await limited;
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
