#include "http/server/uptake.hpp"

#include "http/unacknowledged_bytes.hpp"
#include "support/raw_peer.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;
using testing::raw_peer;

/// A server's side of a connection, and its client.
class uptake_test : public ::testing::Test {
protected:
    uptake_test()
        : uptake_test{testing::tcp_ends({.ours = 4096, .theirs = 65'536})} {}

    [[nodiscard]] bool is_too_slow() const { return of_client_.is_too_slow(limits_); }
    void look() { of_client_.look(server_.fd()); }
    /// The client's kernel has told that there is room.
    void take(std::size_t bytes) {
        const int before = unacknowledged_bytes(server_.fd());
        ASSERT_EQ(client_.receive(bytes).size(), bytes);
        for (int each = 0; each < 10'000; ++each) {
            if (unacknowledged_bytes(server_.fd()) < before) return;
            std::this_thread::sleep_for(1ms);
        }
        FAIL() << "the kernel does not tell that the client has read";
    }

    raw_peer client_;
    raw_peer server_;
    limits limits_{.send_idle = 60s, .minimum_rate = 240};
    uptake of_client_;

private:
    explicit uptake_test(std::pair<unique_fd, unique_fd> ends)
        : client_{std::move(ends.first)}
        , server_{std::move(ends.second)} {
        static_cast<void>(server_.send_until_full(std::string(4096, 'x')));
    }
};

TEST_F(uptake_test, a_client_that_takes_nothing_has_its_time_and_no_more) {
    limits_.minimum_rate = 0;
    look();
    of_client_.waited(30s);
    look();
    of_client_.waited(30s - 1ns);
    EXPECT_FALSE(is_too_slow());
    look();
    of_client_.waited(1ns);

    EXPECT_TRUE(is_too_slow());
}

TEST_F(uptake_test, a_client_that_takes_something_has_its_time_again) {
    limits_.minimum_rate = 0;
    look();
    of_client_.waited(59s);
    take(40'000);
    look();
    of_client_.waited(59s);
    look();

    EXPECT_FALSE(is_too_slow());
    of_client_.waited(1s);
    EXPECT_TRUE(is_too_slow());
}

// The kernel enlarges its buffer while the client reads nothing.
TEST_F(uptake_test, what_our_kernel_takes_is_not_taken) {
    look();
    of_client_.waited(59s);
    testing::set_buffers(server_.fd(), 1'048'576);
    ASSERT_GT(server_.send_until_full(std::string(4096, 'x')), 200'000U);
    look();
    of_client_.waited(1s);

    EXPECT_TRUE(is_too_slow());
}

TEST_F(uptake_test, a_client_that_takes_less_than_the_rate_is_too_slow) {
    look();
    take(40'000);
    look();
    of_client_.waited(30s);
    EXPECT_FALSE(is_too_slow()); // whatever it takes
    of_client_.waited(20s);
    EXPECT_FALSE(is_too_slow()); // 40 000 bytes are enough for 160 s
    for (int each = 0; each < 20; ++each) {
        static_cast<void>(client_.receive(1));
        of_client_.waited(30s);
        of_client_.look(server_.fd());
    }

    limits_.send_idle = {};
    EXPECT_TRUE(is_too_slow());
}

TEST_F(uptake_test, a_limit_of_zero_is_none) {
    limits_ = {.send_idle = {}, .minimum_rate = 0};
    look();
    of_client_.waited(24h);
    look();

    EXPECT_FALSE(is_too_slow());
}

TEST_F(uptake_test, looks_follow_each_other_by_an_eighth_of_the_limit) {
    limits_.send_idle = 8s;
    EXPECT_EQ(of_client_.until_look(limits_), 1s);
    of_client_.waited(600ms);
    EXPECT_EQ(of_client_.until_look(limits_), 400ms);
    look();
    EXPECT_EQ(of_client_.until_look(limits_), 1s);
    limits_.send_idle = 24h;
    EXPECT_EQ(of_client_.until_look(limits_), 5s);
}

TEST_F(uptake_test, the_next_answer_begins_anew) {
    look();
    of_client_.waited(24h);
    ASSERT_TRUE(is_too_slow());

    of_client_.reset();

    EXPECT_FALSE(is_too_slow());
}

} // namespace
} // namespace simplenet::v0::http::detail
