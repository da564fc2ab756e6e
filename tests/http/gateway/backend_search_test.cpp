#include "http/gateway/backend_search.hpp"
#include "support/backend_test.hpp"
#include "support/error_of.hpp"

#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::gateway_event;
using http::detail::backend_connection;
using http::detail::backend_connections;
using http::detail::backend_lease;
using http::detail::backend_search;
using http::detail::backend_set;

/// Two backends with one place each, the first of which gets nearly all requests.
class backend_search_test : public backend_test {
protected:
    void listen() {
        for (std::size_t each = 0; each < 2; ++each) {
            listeners_[each].emplace(or_throw(tcp_listener::bind(endpoint::loopback(0))));
            const std::uint16_t port = or_throw(listeners_[each]->local_endpoint()).port();
            names_[each] = "127.0.0.1:" + std::to_string(port);
        }
        set_ = std::make_shared<const backend_set>(
            std::array{http::backend{names_[0], 1000}, http::backend{names_[1], 1}});
        connections_.emplace(set_, http::detail::connection_limits{.most = 1});
    }
    void TearDown() override {
        connections_.reset();
        listeners_ = {};
        backend_test::TearDown();
    }
    [[nodiscard]] backend_search search(std::chrono::nanoseconds wait) {
        return {*set_, *connections_, ip_address::loopback_v4(), wait};
    }

    std::array<std::optional<tcp_listener>, 2> listeners_;
    std::array<std::string, 2> names_;
    std::shared_ptr<const backend_set> set_;
    std::optional<backend_connections> connections_;
};

TEST_P(backend_search_test, a_backend_with_a_free_place_is_asked_before_a_full_one) {
    run([&]() -> task<> {
        listen();
        backend_search one = search(1h);
        backend_lease first = *one.next();
        auto held = or_throw(co_await one.borrow(first, false));
        backend_search two = search(1h);

        backend_lease second = *two.next();
        const auto other = or_throw(co_await two.borrow(second, false));

        EXPECT_EQ(first.name(), names_[0]);
        EXPECT_EQ(second.name(), names_[1]);
        EXPECT_EQ(search(1h).next()->name(), names_[0]); // the least busy of full ones
        connections_->give_back(first, std::move(held));
        first.end();
        EXPECT_EQ(search(1h).next()->name(), names_[0]);
    });
}

TEST_P(backend_search_test, a_request_waits_only_so_long_at_all_backends_together) {
    run([&]() -> task<> {
        listen();
        backend_search others = search(1h);
        backend_lease first = *others.next();
        const auto held = or_throw(co_await others.borrow(first, false));
        backend_lease second = *others.next();
        const auto held_too = or_throw(co_await others.borrow(second, false));
        backend_search late = search(1ms);
        backend_lease at = *late.next();

        const auto refused = co_await late.borrow(at, false);

        EXPECT_EQ(error_of(refused), std::errc::resource_unavailable_try_again);
        EXPECT_FALSE(late.next()); // nor does it wait at the other
    });
}

// It used to be refused by nobody, which looked like backends that cannot be reached.
TEST_P(backend_search_test, a_request_without_time_learns_that_all_backends_are_full) {
    run([&]() -> task<> {
        listen();
        backend_search others = search(1h);
        backend_lease first = *others.next();
        const auto held = or_throw(co_await others.borrow(first, false));
        backend_lease second = *others.next();
        const auto held_too = or_throw(co_await others.borrow(second, false));
        backend_search hasty = search(0s);
        auto at = hasty.next();
        EXPECT_TRUE(at);
        if (!at) co_return;

        const auto refused = co_await hasty.borrow(*at, false);

        EXPECT_EQ(error_of(refused), std::errc::resource_unavailable_try_again);
        EXPECT_FALSE(hasty.next());
    });
}

TEST_P(backend_search_test, a_place_that_became_free_elsewhere_is_found_when_the_time_is_up) {
    run([&]() -> task<> {
        listen();
        backend_search others = search(1h);
        backend_lease first = *others.next();
        const auto held = or_throw(co_await others.borrow(first, false));
        backend_lease second = *others.next();
        auto held_too = std::optional{or_throw(co_await others.borrow(second, false))};
        backend_search late = search(1ms);
        backend_lease at = *late.next();
        held_too.reset();
        second.end();

        const auto refused = co_await late.borrow(at, false);
        auto next = late.next();

        EXPECT_EQ(error_of(refused), std::errc::resource_unavailable_try_again);
        EXPECT_EQ(next ? next->name() : "none", names_[1]);
        if (!next) co_return;
        EXPECT_TRUE(co_await late.borrow(*next, false));
    });
}

TEST(backend_search_verdict_test, each_error_has_a_status_and_somebody_to_blame) {
    const auto judge = [](std::errc why) {
        return backend_search::judge(std::make_error_code(why));
    };

    EXPECT_EQ(judge(std::errc::resource_unavailable_try_again).status, 503U);
    EXPECT_EQ(judge(std::errc::too_many_files_open).status, 503U);
    EXPECT_EQ(judge(std::errc::too_many_files_open).kind, gateway_event::trouble);
    EXPECT_EQ(judge(std::errc::timed_out).status, 504U);
    EXPECT_EQ(judge(std::errc::timed_out).kind, gateway_event::failed);
    EXPECT_EQ(judge(std::errc::connection_refused).status, 502U);
}

INSTANTIATE_TEST_SUITE_P(backends, backend_search_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
