#include <simplenet/io/loop_options.hpp>

#include "support/backend_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/sleep.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

static_assert(std::copyable<loop_options>);
static_assert(std::is_trivially_destructible_v<loop_options>,
              "GCC 12 destroys other temporaries twice in a co_await expression");

TEST(backend_names_test, match_the_values_of_the_environment_variable) {
    EXPECT_STREQ(to_string(backend::automatic), "automatic");
    EXPECT_STREQ(to_string(backend::epoll), "epoll");
    EXPECT_STREQ(to_string(backend::io_uring), "io_uring");
}

class loop_options_test : public backend_test {
protected:
    /// Sends a megabyte through a loop with `options`.
    void expect_to_work(const loop_options& options) {
        remake_loop(options);
        std::vector<std::byte> sent(1'000'000), received(sent.size());
        for (std::size_t at = 0; at < sent.size(); ++at)
            sent[at] = std::byte(at * 7 + at / 251);
        run([&]() -> task<> {
            auto [ours, theirs] = or_throw(local_stream::pair());
            const auto [written, read] =
                co_await when_all(async_write_all(ours, sent), async_read_exact(theirs, received));
            EXPECT_TRUE(written && read);
        });
        EXPECT_EQ(sent, received);
    }
};

TEST_P(loop_options_test, the_defaults_work) {
    expect_to_work({});
}

TEST_P(loop_options_test, any_queue_depth_will_do) {
    for (const unsigned depth :
         {0U, 1U, 3U, 8U, 1000U, 5000U, std::numeric_limits<unsigned>::max()})
        expect_to_work({.queue_depth = depth});
}

TEST_P(loop_options_test, a_short_queue_takes_more_operations_than_it_has_entries) {
    remake_loop({.queue_depth = 8});
    run([]() -> task<> {
        auto transfer = []() -> task<> {
            auto [ours, theirs] = or_throw(local_stream::pair());
            std::array<std::byte, 4> buffer;
            const auto [read, written] =
                co_await when_all(async_read_exact(theirs, buffer), async_write_all(ours, "four"));
            EXPECT_TRUE(read && written);
        };
        std::vector<task<>> many;
        for (int number = 0; number < 200; ++number)
            many.push_back(transfer());
        co_await when_all(std::move(many));
    });
}

TEST_P(loop_options_test, any_read_ahead_will_do) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100'000},
                                    std::numeric_limits<std::size_t>::max()})
        expect_to_work({.read_ahead = bytes});
}

TEST_P(loop_options_test, any_receive_pool_will_do) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1'000'000},
                                    std::numeric_limits<std::size_t>::max()})
        expect_to_work({.receive_pool = bytes});
}

TEST_P(loop_options_test, busy_polling_changes_no_result) {
    expect_to_work({.busy_poll = 50us});
    expect_to_work({.busy_poll = -1h});
}

INSTANTIATE_TEST_SUITE_P(backends, loop_options_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
