// A stop at every suspension of a lookup and of a race of connections.

#include "support/stop_everywhere.hpp"

#include "support/coroutines.hpp"
#include "support/full_listener.hpp"
#include "support/scripted_resolver.hpp"

#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/resolve.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::scenario;
using testing::turns;

constexpr auto v4 = address_family::v4;
constexpr auto v6 = address_family::v6;

class stop_connecting_test : public testing::stop_everywhere_test {};

class asking : public scenario {
public:
    task<> partner() override {
        co_await turns(3);
        resolver_.answer("host", v4, {"127.0.0.2", "127.0.0.3"});
        co_await turns(3);
        resolver_.answer("host", v6, {"127.0.0.4"});
    }
    /// Every lookup that was started ends.
    task<> verify() override {
        resolver_.give_up();
        co_await testing::until([this] { return resolver_->questions() == 0; });
    }

protected:
    testing::scripted_resolver resolver_;
};

class resolving : public asking {
    task<> subject() override {
        const auto found = co_await async_resolve("host", 80);
        expect_success_or_stop(found);
        if (!found) co_return;
        EXPECT_FALSE(found->empty());
        expect_success_or_stop(co_await async_resolve("127.0.0.1", 80));
        expect_success_or_stop(co_await async_resolve("host", 80, {.family = v4}));
    }
};
TEST_P(stop_connecting_test, async_resolve) {
    stop_everywhere<resolving>();
}

class connecting : public asking {
public:
    /// The connection carries bytes.
    task<> verify() override {
        co_await asking::verify();
        if (!stream_) co_return;
        EXPECT_TRUE(co_await stream_->write_some("hello"));
        auto peer = or_throw(listener_.accept());
        std::array<char, 8> buffer{};
        EXPECT_EQ(peer.read_some(buffer).value_or(0), 5U);
    }

protected:
    task<> connect(connect_options options) {
        auto stream = co_await async_connect("host", silent_.at().port(), options);
        expect_success_or_stop(stream);
        if (stream) stream_ = *std::move(stream);
    }

    // 127.0.0.4 never answers, 127.0.0.2 refuses.
    testing::full_listener silent_{endpoint{or_throw(ip_address::parse("127.0.0.4")), 0}};
    blocking::tcp_listener listener_ = or_throw(blocking::tcp_listener::bind(
        endpoint{or_throw(ip_address::parse("127.0.0.3")), silent_.at().port()}));
    std::optional<tcp_stream> stream_;
};

class racing : public connecting {
    task<> subject() override { co_await connect({.attempt_delay = 10ms}); }
};
TEST_P(stop_connecting_test, async_connect_by_name) {
    stop_everywhere<racing>();
}

class racing_with_limits : public connecting {
    task<> subject() override {
        connect_report report;
        co_await with_timeout(connect({.timeout = 1h, .attempt_delay = 10ms, .report = &report}),
                              2h);
        EXPECT_TRUE(!stream_ || report.attempts.size() >= 2);
    }
};
TEST_P(stop_connecting_test, async_connect_by_name_with_limits) {
    stop_everywhere<racing_with_limits>();
}

class losing : public connecting {
    task<> subject() override {
        const auto ended = co_await when_any(connect({.attempt_delay = 10ms}), async_sleep(1h));
        EXPECT_TRUE(ended.index == 0 || stopped());
    }
};
TEST_P(stop_connecting_test, async_connect_by_name_among_others) {
    stop_everywhere<losing>();
}

INSTANTIATE_TEST_SUITE_P(backends, stop_connecting_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
