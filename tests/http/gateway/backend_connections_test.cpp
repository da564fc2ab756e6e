#include "http/gateway/backend_connections.hpp"
#include "support/backend_test.hpp"
#include "support/closed_port.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::backend_connection;
using http::detail::backend_connections;
using http::detail::backend_lease;
using http::detail::backend_marks;
using http::detail::backend_set;
using http::detail::client_key;
using http::detail::connection_limits;
using http::detail::key_of;
using http::detail::repeatable;

std::shared_ptr<const backend_set> set_of(std::string_view address) {
    return std::make_shared<const backend_set>(std::array{http::backend{address}});
}
/// Each connection needs one of its own, for its place.
backend_lease lease_of(const backend_set& set) {
    backend_marks tried;
    return *set.pick(tried);
}

class backend_connections_test : public backend_test {
protected:
    void listen() {
        listener_.emplace(or_throw(tcp_listener::bind(endpoint::loopback(0))));
        const std::uint16_t port = or_throw(listener_->local_endpoint()).port();
        set_ = set_of("127.0.0.1:" + std::to_string(port));
    }
    void TearDown() override {
        listener_.reset();
        backend_test::TearDown();
    }

    /// Backends end connections that are kept.
    ///
    /// @param is_watched  By the loop: otherwise the kernel is asked in any case.
    template <class Listener>
    task<> end_kept_connections(std::shared_ptr<const backend_set> set, Listener& at,
                                bool is_watched) {
        backend_connections connections{set, {}};
        backend_lease lease = lease_of(*set);
        for (const repeatable may_repeat : {repeatable::no, repeatable::yes}) {
            for (const bool is_polled : {true, false}) {
                auto kept = or_throw(co_await connections.borrow(lease, client_, wait_));
                EXPECT_FALSE(kept.is_reused());
                auto peer = or_throw(co_await at.accept());
                static_cast<void>(or_throw(co_await async_write_all(peer, "x")));
                std::array<std::byte, 9> bytes;
                EXPECT_EQ(or_throw(co_await kept->read_some(bytes)), 1U);
                connections.give_back(lease, std::move(kept));
                co_await turns(2);
                auto again =
                    or_throw(co_await connections.borrow(lease, client_, wait_, may_repeat));
                EXPECT_TRUE(again.is_reused());
                connections.give_back(lease, std::move(again));

                peer.close();
                if (is_polled && is_watched) co_await next_event(loop());
                const auto last =
                    or_throw(co_await connections.borrow(lease, client_, wait_, may_repeat));

                const bool is_missed = may_repeat == repeatable::yes && is_watched && !is_polled;
                EXPECT_EQ(last.is_reused(), is_missed);
                if (!last.is_reused()) static_cast<void>(or_throw(co_await at.accept()));
            }
        }
    }

    std::optional<tcp_listener> listener_;
    std::shared_ptr<const backend_set> set_;
    std::chrono::nanoseconds wait_ = 10s;
    const client_key client_ = key_of(ip_address::loopback_v4());
};

TEST_P(backend_connections_test, a_connection_is_used_again_until_its_peer_ends_it) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {}};
        backend_lease lease = lease_of(*set_);
        auto first = or_throw(co_await connections.borrow(lease, client_, wait_));
        auto peer = or_throw(co_await listener_->accept());
        EXPECT_FALSE(first.is_reused());
        connections.give_back(lease, std::move(first));

        auto again = or_throw(co_await connections.borrow(lease, client_, wait_));
        EXPECT_TRUE(again.is_reused());
        connections.give_back(lease, std::move(again));
        peer.close();

        const auto other = or_throw(co_await connections.borrow(lease, client_, wait_));
        EXPECT_FALSE(other.is_reused());
        EXPECT_EQ(connections.size(0), 1U);
    });
}

// The kernel is asked only for a request that cannot be repeated: otherwise the loop's last poll
// counts.
TEST_P(backend_connections_test, the_end_of_a_connection_is_known_after_a_turn) {
    run([&]() -> task<> {
        listen();
        co_await end_kept_connections(set_, *listener_, true);
        const temporary_directory folder;
        const std::string path = folder / "socket";
        auto local = or_throw(local_listener::bind(or_throw(local_endpoint::parse(path))));
        co_await end_kept_connections(set_of("unix:" + path), local,
                                      GetParam() != backend::io_uring);
    });
}

TEST_P(backend_connections_test, no_more_than_keep_are_idle) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.keep = 1}};
        backend_lease lease = lease_of(*set_);
        auto one = or_throw(co_await connections.borrow(lease, client_, wait_));
        backend_lease more = lease_of(*set_);
        auto two = or_throw(co_await connections.borrow(more, client_, wait_));

        connections.give_back(lease, std::move(one));
        connections.give_back(more, std::move(two));

        EXPECT_EQ(connections.idle(0), 1U);
        EXPECT_EQ(connections.size(0), 1U);
    });
}

TEST_P(backend_connections_test, without_a_limit_an_idle_connection_stays) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.idle = 0s}};
        backend_lease lease = lease_of(*set_);
        connections.give_back(lease, or_throw(co_await connections.borrow(lease, client_, wait_)));

        static_cast<void>(co_await async_sleep(1ms)); // a turn in which timers fire

        EXPECT_EQ(connections.idle(0), 1U);
    });
}

TEST_P(backend_connections_test, a_connection_that_was_idle_too_long_is_closed) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.idle = 1ms}};
        backend_lease lease = lease_of(*set_);
        auto one = or_throw(co_await connections.borrow(lease, client_, wait_));
        auto peer = or_throw(co_await listener_->accept());
        connections.give_back(lease, std::move(one));
        std::array<std::byte, 1> byte;

        EXPECT_EQ(error_of(co_await peer.read_some(byte)), errc::end_of_stream);

        EXPECT_EQ(connections.size(0), 0U);
    });
}

// A timer that is due soon makes each sleep of the loop dearer.
TEST_P(backend_connections_test, the_timer_of_idle_connections_moves_with_them) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.idle = 1s}};
        backend_lease lease = lease_of(*set_);
        auto one = or_throw(co_await connections.borrow(lease, client_, wait_));
        connections.give_back(lease, std::move(one));
        const auto before = event_loop::current()->next_timer();
        co_await async_sleep(200ms);
        auto again = or_throw(co_await connections.borrow(lease, client_, wait_));
        connections.give_back(lease, std::move(again));
        const auto after = event_loop::current()->next_timer();

        EXPECT_GE(after.value() - before.value(), 150ms);
    });
}

TEST_P(backend_connections_test, a_new_connection_replaces_those_that_are_kept) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {}};
        backend_lease lease = lease_of(*set_);
        auto one = or_throw(co_await connections.borrow(lease, client_, wait_));
        backend_lease more = lease_of(*set_);
        auto two = or_throw(co_await connections.borrow(more, client_, wait_));
        connections.give_back(lease, std::move(one));
        connections.give_back(more, std::move(two));

        const auto other = or_throw(co_await connections.borrow_new(lease, client_, wait_));

        EXPECT_FALSE(other.is_reused());
        EXPECT_EQ(connections.size(0), 1U);
    });
}

// A backend that closes each connection behind its first answer closes that one, too.
TEST_P(backend_connections_test, a_new_connection_is_none_that_another_request_gave_back) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.keep = 1, .most = 1}};
        backend_lease lease = lease_of(*set_);
        auto first = or_throw(co_await connections.borrow(lease, client_, wait_));
        auto peer = or_throw(co_await listener_->accept());
        backend_lease other = lease_of(*set_);
        auto waiting = spawn([&]() -> task<> {
            const auto renewed = or_throw(co_await connections.borrow_new(other, client_, wait_));
            EXPECT_FALSE(renewed.is_reused());
            EXPECT_EQ(connections.size(0), 1U);
            const auto written = co_await async_write_all(renewed.stream(), "x");
            EXPECT_TRUE(written);
        });
        co_await turns(2);

        connections.give_back(lease, std::move(first));
        lease.end();

        auto second = or_throw(co_await listener_->accept());
        co_await waiting;
        std::array<std::byte, 1> byte;
        EXPECT_EQ(error_of(co_await peer.read_some(byte)), errc::end_of_stream);
        EXPECT_EQ(or_throw(co_await second.read_some(byte)), 1U);
    });
}

TEST_P(backend_connections_test, a_place_is_waited_for_only_so_long) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.most = 1}};
        backend_lease lease = lease_of(*set_);
        const auto held = or_throw(co_await connections.borrow(lease, client_, wait_));

        backend_lease other = lease_of(*set_);
        wait_ = 1ms;
        const auto refused = co_await connections.borrow(other, client_, wait_);

        EXPECT_EQ(error_of(refused), std::errc::resource_unavailable_try_again);
        EXPECT_EQ(wait_, 0ms);
        wait_ = 10s;
        // The caller's own limit is another error.
        auto waiting = connections.borrow(other, client_, wait_);
        const auto late = co_await with_timeout(std::move(waiting), 0ms);
        EXPECT_EQ(error_of(late), errc::deadline_exceeded);
    });
}

TEST_P(backend_connections_test, a_waiter_gets_the_place_of_a_connection_that_ends) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.most = 1}};
        backend_lease lease = lease_of(*set_);
        std::optional held{or_throw(co_await connections.borrow(lease, client_, wait_))};
        backend_lease other = lease_of(*set_);
        bool lent = false;
        auto waiting = spawn([&]() -> task<> {
            const auto mine = or_throw(co_await connections.borrow(other, client_, wait_));
            lent = true;
        });
        co_await yield();
        EXPECT_FALSE(lent);

        held.reset();
        lease.end();
        co_await waiting;

        EXPECT_TRUE(lent);
    });
}

// One client used to keep all others out with requests for slow answers.
TEST_P(backend_connections_test, one_client_leaves_places_to_others) {
    run([&]() -> task<> {
        listen();
        backend_connections connections{set_, {.most = 10}};
        std::vector<backend_lease> leases;
        std::vector<backend_connection> lent;
        wait_ = 0s;
        for (int each = 0; each < 10; ++each) {
            leases.push_back(lease_of(*set_));
            auto borrowed = co_await connections.borrow(leases.back(), client_, wait_);
            if (borrowed) lent.push_back(*std::move(borrowed));
        }
        backend_lease lease = lease_of(*set_);
        const client_key other = key_of(ip_address::loopback_v6());

        const auto borrowed = co_await connections.borrow(lease, other, wait_);

        EXPECT_EQ(lent.size(), 5U);
        EXPECT_TRUE(borrowed);
    });
}

TEST_P(backend_connections_test, unix_sockets_are_backends_too) {
    run([&]() -> task<> {
        const temporary_directory folder;
        const std::string path = folder / "socket";
        auto listener = or_throw(local_listener::bind(or_throw(local_endpoint::parse(path))));
        const auto set = set_of("unix:" + path);
        backend_connections connections{set, {}};
        backend_lease lease = lease_of(*set);

        auto connection = or_throw(co_await connections.borrow(lease, client_, wait_));
        auto peer = or_throw(co_await listener.accept());
        static_cast<void>(or_throw(co_await async_write_all(connection.stream(), "x")));
        std::array<std::byte, 2> bytes;

        EXPECT_EQ(or_throw(co_await peer.read_some(bytes)), 1U);
    });
}

TEST_P(backend_connections_test, a_backend_that_is_not_there_is_an_error) {
    run([&]() -> task<> {
        const closed_port closed;
        const auto set = set_of("127.0.0.1:" + std::to_string(closed.number()));
        backend_connections connections{set, {}};
        backend_lease lease = lease_of(*set);

        const auto refused = co_await connections.borrow(lease, client_, wait_);

        EXPECT_EQ(error_of(refused), std::errc::connection_refused);
        EXPECT_EQ(connections.size(0), 0U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, backend_connections_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
