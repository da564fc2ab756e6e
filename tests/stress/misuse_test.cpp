// Every await that can break a contract: the message names its place, the coroutines that await it,
// and the task.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <source_location>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connected_pair;
using testing::turns;

void blame_next_line(std::source_location at = std::source_location::current()) {
    std::fprintf(stderr, "line %u is to blame\n", at.line() + 1);
}

/// Pairs of awaits. Where needed, the first one is in flight; the second one stops the program.
struct misuses {
    testing::stream_pair pair = connected_pair();
    std::array<std::byte, 16> buffer{};

    task<> read() { (void)co_await pair.ours.read_some(buffer); }
    task<> write_all() {
        const std::string much(1 << 24, 'x');
        (void)co_await async_write_all(pair.ours, much);
    }

    task<> second_read() {
        auto first = spawn(read());
        co_await turns(2);
        blame_next_line();
        (void)co_await pair.ours.read_some(buffer);
    }
    task<> second_receive() {
        auto first = spawn(read());
        co_await turns(2);
        blame_next_line();
        (void)co_await pair.ours.receive();
    }
    task<> second_read_with_a_limit() {
        auto first = spawn(read());
        co_await turns(2);
        blame_next_line();
        (void)co_await with_timeout(pair.ours.read_some(buffer), 1h);
    }
    task<> second_write() {
        auto first = spawn(write_all());
        co_await turns(2);
        blame_next_line();
        (void)co_await pair.ours.write_some("x");
    }
    task<> second_exact_read() {
        auto first = spawn(read());
        co_await turns(2);
        blame_next_line();
        (void)co_await async_read_exact(pair.ours, buffer);
    }
    task<> second_read_of_any_stream() {
        any_stream any{std::move(pair.ours)};
        auto reads = [&]() -> task<> { (void)co_await any.read_some(buffer); };
        auto first = spawn(reads());
        co_await turns(2);
        std::array<std::byte, 16> other{};
        blame_next_line();
        (void)co_await any.read_some(other);
    }
    task<> read_of_a_moved_from_stream() {
        tcp_stream moved = std::move(pair.ours);
        blame_next_line();
        (void)co_await pair.ours.read_some(buffer);
    }
    task<> write_to_a_moved_from_stream() {
        tcp_stream moved = std::move(pair.ours);
        blame_next_line();
        (void)co_await pair.ours.write_some("x");
    }
    task<> closed_of_a_moved_from_stream() {
        tcp_stream moved = std::move(pair.ours);
        blame_next_line();
        (void)co_await pair.ours.closed();
    }
    task<> second_read_of_a_duplex_stream() {
        auto [one, other] = duplex();
        auto reads = [&]() -> task<> { (void)co_await one.read_some(buffer); };
        auto first = spawn(reads());
        co_await turns(2);
        blame_next_line();
        (void)co_await one.read_some(buffer);
    }
    task<> second_join_of_a_group() {
        task_group group;
        group.spawn(read());
        auto joins = [&]() -> task<> { (void)co_await group.join(); };
        auto first = spawn(joins());
        co_await turns(2);
        blame_next_line();
        (void)co_await group.join();
    }
    task<> second_receive_of_a_oneshot() {
        oneshot<int> one;
        auto to = one.make_sender();
        auto receives = [&]() -> task<> { (void)co_await one.receive(); };
        auto first = spawn(receives());
        co_await turns(2);
        blame_next_line();
        (void)co_await one.receive();
    }
    task<> wait_without_the_lock() {
        async_mutex mutex;
        async_condition_variable condition;
        auto guard = co_await mutex.lock();
        guard->unlock();
        auto never = [] { return false; };
        blame_next_line();
        (void)co_await condition.wait(*guard, never);
    }
};
using misuse = task<> (misuses::*)();

/// Whether the message first names the line of the mistake, then the awaiting coroutines and the
/// task.
bool is_told_well(const std::string& output) {
    const std::string blames = std::to_string(std::atoi(output.c_str() + std::strlen("line ")));
    const std::string site = "    at [^\n]*misuse_test\\.cpp:";
    const std::regex message{"line [0-9]+ is to blame\n"
                             "[^\n]+:[0-9]+: simplenet contract violation: [^\n]+\n"
                             "    in task #[0-9]+ serve\n" +
                             site + blames + "\n" + site + "[0-9]+\n" + site + "[0-9]+\n" +
                             "(qemu: [^\n]+\n)?"}; // an emulator tells of the abort as well
    return std::regex_match(output, message);
}

class misuse_test : public testing::backend_test {
protected:
    void expect_told(misuse which) {
        const auto stop = [&] {
            misuses all;
            auto inner = [&]() -> task<> { co_await (all.*which)(); };
            auto serve = [&]() -> task<> {
                this_task::set_name("serve");
                auto arm = inner();
                co_await when_all(std::move(arm)); // not a task of its own
            };
            loop().spawn(serve());
            loop().run();
        };
        EXPECT_DEATH(stop(), ::testing::Truly(is_told_well));
    }
};

TEST_P(misuse_test, second_read) {
    expect_told(&misuses::second_read);
}
TEST_P(misuse_test, second_receive) {
    expect_told(&misuses::second_receive);
}
TEST_P(misuse_test, second_read_with_a_limit) {
    expect_told(&misuses::second_read_with_a_limit);
}
TEST_P(misuse_test, second_write) {
    expect_told(&misuses::second_write);
}
TEST_P(misuse_test, second_exact_read) {
    expect_told(&misuses::second_exact_read);
}
TEST_P(misuse_test, second_read_of_any_stream) {
    expect_told(&misuses::second_read_of_any_stream);
}
TEST_P(misuse_test, read_of_a_moved_from_stream) {
    expect_told(&misuses::read_of_a_moved_from_stream);
}
TEST_P(misuse_test, write_to_a_moved_from_stream) {
    expect_told(&misuses::write_to_a_moved_from_stream);
}
TEST_P(misuse_test, closed_of_a_moved_from_stream) {
    expect_told(&misuses::closed_of_a_moved_from_stream);
}
TEST_P(misuse_test, second_read_of_a_duplex_stream) {
    expect_told(&misuses::second_read_of_a_duplex_stream);
}
TEST_P(misuse_test, second_join_of_a_group) {
    expect_told(&misuses::second_join_of_a_group);
}
TEST_P(misuse_test, second_receive_of_a_oneshot) {
    expect_told(&misuses::second_receive_of_a_oneshot);
}
TEST_P(misuse_test, wait_without_the_lock) {
    expect_told(&misuses::wait_without_the_lock);
}

// Outside an await no more is known than for a stall.
TEST_P(misuse_test, a_misuse_outside_an_await_names_the_task) {
    const auto stop = [&] {
        auto serve = []() -> task<> {
            this_task::set_name("serve");
            co_await yield();
            auto [one, other] = connected_pair();
            (void)co_await one.read_some(mutable_buffer{});
        };
        loop().spawn(serve());
        loop().run();
    };
    EXPECT_DEATH(stop(),
                 "in task #[0-9]+ serve\n    last seen at [^\n]*misuse_test\\.cpp:[0-9]+\n");
}

INSTANTIATE_TEST_SUITE_P(backends, misuse_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
