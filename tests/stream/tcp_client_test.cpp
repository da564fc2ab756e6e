#include <simplenet/stream/tcp_client.hpp>

#include "support/backend_test.hpp"
#include "support/closed_port.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/full_listener.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace simplenet::v0 {

/// Sets what a program cannot set.
struct detail::client_access {
    static void seed(tcp_client& client, std::uint32_t seed) { client.seed_ = seed; }
};

namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::closed_port;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::turns;

constexpr backoff second_steps{.initial = 1s, .maximum = 8s};
constexpr auto lost = std::errc::connection_reset;

using kinds = std::vector<enum client_event::kind>;

/// A session that ends at once with success.
task<result<>> succeed(tcp_stream&) {
    co_return result<>{};
}

/// All times are those of a manual clock: nothing here waits for I/O, so it jumps from timer to
/// timer.
class tcp_client_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        if (IsSkipped()) return;
        remake_loop({.clock = &clock_});
    }
    void TearDown() override {
        backend_test::TearDown(); // the clock outlives the loop
    }

    tcp_client watched(std::uint16_t port, client_options options = {.backoff = second_steps}) {
        tcp_client client{"127.0.0.1", port, options};
        client.on_event = [this](const client_event& event) { events_.push_back(event); };
        return client;
    }
    [[nodiscard]] kinds seen() const {
        kinds all;
        for (const client_event& each : events_)
            all.push_back(each.kind);
        return all;
    }
    [[nodiscard]] std::vector<std::size_t> attempts() const {
        std::vector<std::size_t> all;
        for (const client_event& each : events_)
            all.push_back(each.attempt);
        return all;
    }

    testing::manual_clock clock_;
    closed_port port_;
    std::vector<client_event> events_;
};

// --- connections ---------------------------------------------------------------------------------

TEST_P(tcp_client_test, a_session_that_succeeds_ends_the_client) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        auto session = [&](tcp_stream& stream) -> task<result<>> {
            auto peer = port_.accept();
            const auto sent = co_await async_write_all(stream, "hello");
            EXPECT_EQ(peer.receive(5), "hello");
            if (!sent) co_return fail(sent);
            co_return result<>{};
        };
        EXPECT_TRUE(co_await client.run(session));
    });
    EXPECT_THAT(seen(), ElementsAre(client_event::connected));
    EXPECT_EQ(events_[0].attempt, 1U);
    EXPECT_FALSE(events_[0].error);
    EXPECT_EQ(events_[0].next_delay, 0ns);
}

TEST_P(tcp_client_test, it_tries_until_the_server_is_there) {
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        auto record = std::move(client.on_event);
        client.on_event = [&](const client_event& event) {
            record(event);
            if (event.attempt == 3) port_.open();
        };
        EXPECT_TRUE(co_await client.run(succeed));
    });
    EXPECT_THAT(seen(), ElementsAre(client_event::connect_failed, client_event::connect_failed,
                                    client_event::connect_failed, client_event::connected));
    EXPECT_THAT(attempts(), ElementsAre(1U, 2U, 3U, 4U));
    EXPECT_EQ(events_[0].error, std::errc::connection_refused);
    EXPECT_FALSE(events_[3].error);
    EXPECT_EQ(events_[3].next_delay, 0ns);
}

TEST_P(tcp_client_test, an_error_of_the_session_means_connect_again) {
    port_.open();
    int sessions = 0;
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        auto session = [&](tcp_stream& stream) -> task<result<>> {
            auto peer = port_.accept();
            peer.close();
            std::array<char, 1> byte;
            const auto count = co_await stream.read_some(byte);
            EXPECT_EQ(error_of(count), errc::end_of_stream);
            if (++sessions == 3) co_return result<>{};
            co_return fail(count);
        };
        EXPECT_TRUE(co_await client.run(session));
    });
    EXPECT_THAT(seen(), ElementsAre(client_event::connected, client_event::disconnected,
                                    client_event::connected, client_event::disconnected,
                                    client_event::connected));
    EXPECT_THAT(attempts(), ElementsAre(1U, 1U, 2U, 2U, 3U));
    EXPECT_EQ(events_[1].error, errc::end_of_stream);
}

TEST_P(tcp_client_test, the_connection_is_closed_before_the_pause) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        std::optional<testing::raw_peer> first;
        client.on_event = [&](const client_event& event) {
            if (event.kind == client_event::disconnected) {
                EXPECT_EQ(first->receive_to_the_end(), errc::end_of_stream);
            }
        };
        auto session = [&](tcp_stream&) -> task<result<>> {
            if (first) co_return result<>{};
            first.emplace(port_.accept());
            co_return fail(lost);
        };
        EXPECT_TRUE(co_await client.run(session));
        EXPECT_TRUE(first);
    });
}

// --- pauses --------------------------------------------------------------------------------------

TEST_P(tcp_client_test, pauses_are_random_below_steps_that_grow_and_the_client_keeps_to_them) {
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        std::vector<std::chrono::nanoseconds> times;
        auto record = std::move(client.on_event);
        client.on_event = [&](const client_event& event) {
            record(event);
            times.push_back(clock_.elapsed());
        };
        const auto ended = co_await with_timeout(client.run(succeed), 300s);
        EXPECT_EQ(error_of(ended), errc::deadline_exceeded);

        EXPECT_GE(events_.size(), 20U);
        std::chrono::nanoseconds step = second_steps.initial;
        bool differ = false;
        for (std::size_t each = 0; each + 1 < events_.size(); ++each) {
            EXPECT_LE(events_[each].next_delay, step);
            EXPECT_GE(times[each + 1] - times[each], events_[each].next_delay);
            EXPECT_LE(times[each + 1] - times[each], events_[each].next_delay + 100ms);
            differ = differ || events_[each].next_delay != events_[each + 1].next_delay;
            step = std::min(2 * step, second_steps.maximum);
        }
        EXPECT_TRUE(differ);
    });
}

TEST_P(tcp_client_test, a_seed_makes_a_client_repeatable) {
    run([&]() -> task<> {
        std::vector<std::vector<std::chrono::nanoseconds>> delays(2);
        for (auto& each : delays) {
            tcp_client client{"127.0.0.1", port_.number(), {.backoff = second_steps}};
            detail::client_access::seed(client, 7);
            client.on_event = [&](const client_event& event) { each.push_back(event.next_delay); };
            static_cast<void>(co_await with_timeout(client.run(succeed), 60s));
        }
        const std::size_t both = std::min(delays[0].size(), delays[1].size());
        EXPECT_GE(both, 4U);
        delays[0].resize(both);
        delays[1].resize(both);
        EXPECT_EQ(delays[0], delays[1]);
    });
}

TEST_P(tcp_client_test, a_connection_that_was_stable_begins_the_back_off_anew) {
    port_.open();
    int sessions = 0;
    run([&]() -> task<> {
        tcp_client client =
            watched(port_.number(), {.backoff = {.initial = 1ms, .maximum = 1h, .factor = 1000},
                                     .stable_after = 10s});
        auto session = [&](tcp_stream&) -> task<result<>> {
            auto peer = port_.accept();
            ++sessions;
            if (sessions == 5) co_return result<>{};
            if (sessions == 3) static_cast<void>(co_await async_sleep(10s));
            if (sessions == 2) static_cast<void>(co_await async_sleep(9s));
            co_return fail(lost);
        };
        EXPECT_TRUE(co_await client.run(session));
    });
    EXPECT_THAT(attempts(), ElementsAre(1U, 1U, 2U, 2U, 3U, 3U, 1U, 1U, 2U));
    EXPECT_LE(events_[5].next_delay, 1ms); // after the stable one
    EXPECT_LE(events_[7].next_delay, 1s);
}

TEST_P(tcp_client_test, a_connection_that_was_not_stable_counts_as_a_failure) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        detail::client_access::seed(client, 1);
        auto session = [&](tcp_stream&) -> task<result<>> {
            auto peer = port_.accept();
            co_return fail(lost);
        };
        EXPECT_EQ(error_of(co_await with_timeout(client.run(session), 10min)),
                  errc::deadline_exceeded);
    });
    // 150 steps of up to 8 s; with steps of 1 s it would be ten times as many.
    EXPECT_GT(events_.size(), 200U);
    EXPECT_LT(events_.size(), 500U);
}

// --- stops and limits ----------------------------------------------------------------------------

TEST_P(tcp_client_test, a_stop_ends_it_in_a_pause) {
    run([&]() -> task<> {
        tcp_client client = watched(port_.number(), {.backoff = {.initial = 1h, .maximum = 1h}});
        clock_.set_automatic(false);
        auto running = spawn(client.run(succeed));
        co_await testing::until([&] { return !events_.empty(); });
        co_await turns(2);
        running.request_stop();
        EXPECT_EQ(error_of(co_await running), canceled);
        EXPECT_EQ(events_.size(), 1U);
    });
}

TEST_P(tcp_client_test, a_stop_ends_it_while_it_connects) {
    const testing::full_listener silent;
    run([&]() -> task<> {
        tcp_client client = watched(silent.at().port());
        auto running = spawn(client.run(succeed));
        co_await turns(5);
        running.request_stop();
        EXPECT_EQ(error_of(co_await running), canceled);
        EXPECT_THAT(events_, IsEmpty());
    });
}

TEST_P(tcp_client_test, a_stop_reaches_the_session_which_is_joined) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        bool over = false;
        auto session = [&](tcp_stream& stream) -> task<result<>> {
            std::array<char, 1> byte;
            const auto count = co_await stream.read_some(byte);
            EXPECT_EQ(error_of(count), canceled);
            co_await shield(turns(3));
            over = true;
            co_return fail(lost); // whatever it says, the client was stopped
        };
        auto running = spawn(client.run(session));
        co_await testing::until([&] { return !events_.empty(); });
        co_await turns(2);
        running.request_stop();
        EXPECT_EQ(error_of(co_await running), canceled);
        EXPECT_TRUE(over);
        EXPECT_EQ(events_.size(), 1U);
    });
}

TEST_P(tcp_client_test, a_session_that_succeeds_beats_a_stop) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        auto session = [&](tcp_stream&) -> task<result<>> {
            static_cast<void>(co_await async_sleep(1h));
            co_return result<>{};
        };
        clock_.set_automatic(false);
        auto running = spawn(client.run(session));
        co_await testing::until([&] { return !events_.empty(); });
        running.request_stop();
        EXPECT_TRUE(co_await running);
    });
}

TEST_P(tcp_client_test, a_session_may_fail_like_a_stopped_one_without_ending_the_client) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        int sessions = 0;
        auto session = [&](tcp_stream&) -> task<result<>> {
            if (++sessions == 2) co_return result<>{};
            co_return fail(canceled);
        };
        EXPECT_TRUE(co_await client.run(session));
    });
    EXPECT_THAT(attempts(), ElementsAre(1U, 1U, 2U));
}

TEST_P(tcp_client_test, an_attempt_that_takes_too_long_is_a_failure_like_any_other) {
    const testing::full_listener silent;
    run([&]() -> task<> {
        tcp_client client =
            watched(silent.at().port(),
                    {.backoff = {.initial = 1ms, .maximum = 1ms}, .connect = {.timeout = 5ms}});
        std::stop_source enough;
        auto record = std::move(client.on_event);
        client.on_event = [&](const client_event& event) {
            record(event);
            if (event.attempt == 3) enough.request_stop();
        };
        EXPECT_EQ(error_of(co_await with_stop(enough.get_token(), client.run(succeed))), canceled);
    });
    EXPECT_EQ(events_.size(), 3U);
    for (const client_event& each : events_) {
        EXPECT_EQ(each.kind, client_event::connect_failed);
        EXPECT_EQ(each.error, errc::deadline_exceeded);
    }
}

// --- callables -----------------------------------------------------------------------------------

TEST_P(tcp_client_test, an_exception_of_the_session_closes_the_connection_and_leaves_run) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        auto session = [&](tcp_stream&) -> task<result<>> {
            throw std::runtime_error{"the session"};
            co_return result<>{};
        };
        try {
            static_cast<void>(co_await client.run(session));
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& thrown) {
            EXPECT_STREQ(thrown.what(), "the session");
        }
        auto peer = port_.accept();
        EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
    });
    EXPECT_EQ(events_.size(), 1U);
}

TEST_P(tcp_client_test, an_exception_of_on_event_closes_the_connection_and_leaves_run) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        client.on_event = [](const client_event&) { throw std::runtime_error{"on_event"}; };
        bool began = false;
        auto session = [&](tcp_stream&) -> task<result<>> {
            began = true;
            co_return result<>{};
        };
        try {
            static_cast<void>(co_await client.run(session));
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& thrown) {
            EXPECT_STREQ(thrown.what(), "on_event");
        }
        EXPECT_FALSE(began);
        auto peer = port_.accept();
        EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(tcp_client_test, the_task_keeps_the_session_and_borrows_one_that_cannot_be_copied) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client{"127.0.0.1", port_.number()}; // without an on_event
        auto text = std::make_shared<std::string>("kept");
        auto running = [&] {
            auto session = [text](tcp_stream&) -> task<result<>> {
                EXPECT_EQ(*text, "kept");
                co_return result<>{};
            };
            return client.run(session);
        }();
        EXPECT_EQ(text.use_count(), 2);
        EXPECT_TRUE(co_await std::move(running));
        EXPECT_EQ(text.use_count(), 1);

        auto unique = [own = std::make_unique<int>(1)](tcp_stream&) mutable -> task<result<>> {
            ++*own;
            co_return result<>{};
        };
        EXPECT_TRUE(co_await client.run(unique));
    });
}

TEST_P(tcp_client_test, the_name_is_looked_up_for_each_attempt) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client{"no such name", port_.number(), {.backoff = second_steps}};
        client.on_event = [this](const client_event& event) { events_.push_back(event); };
        EXPECT_EQ(error_of(co_await with_timeout(client.run(succeed), 30s)),
                  errc::deadline_exceeded);
    });
    EXPECT_GE(events_.size(), 2U);
    for (const client_event& each : events_)
        EXPECT_EQ(each.error, std::errc::invalid_argument); // a blank in the name
}

TEST_P(tcp_client_test, several_runs_share_a_client) {
    port_.open();
    run([&]() -> task<> {
        tcp_client client = watched(port_.number());
        auto [first, second] = co_await when_all(client.run(succeed), client.run(succeed));
        EXPECT_TRUE(first && second);
    });
    EXPECT_THAT(attempts(), ElementsAre(1U, 1U));
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_client_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
